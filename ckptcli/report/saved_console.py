"""What is held after forward, for the eye: a table a strategy, largest first, with totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ckptcli import units
from ckptcli.measure.saved import PartBytes, SavedTensor, total_of
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.screen import Screen

WIDE = 100
"""From here on lines of the program stand whole, if they take at most a third of the screen."""

COLUMNS = (
    Column("node", 0),
    Column("size", 1),
    Column("op", 2, "text"),
    Column("name", 3, "text"),
    Column("shape", 4, "text", folds_to=9),
    Column("made at", 5, "text", folds_to=16),
    Column("freed after", 6, "text", folds_to=12),
    Column("why", 7, "text", folds_to=12),
)
PLACE = COLUMNS[5]
NAME = COLUMNS[3]
"""Which is left out where the program names nothing."""


def render_saved(strategy: str, saved: Sequence[SavedTensor], screen: Screen) -> str:
    """The table of one strategy, ready to print."""
    total_bytes = sum(tensor.bytes for tensor in saved)
    title = f"{strategy}: {units.count(len(saved), 'tensor')}, {units.size(total_bytes)} held"
    if not saved:
        return screen.render(title)
    return screen.render(title, "", screen.draw(_table(saved, screen.width)))


def _table(saved: Sequence[SavedTensor], width: int) -> cells.Table:
    named = any(tensor.name for tensor in saved)
    longest = max(len(tensor.source) for tensor in saved)
    is_whole = width >= WIDE and longest <= width // 3
    columns = [replace(c, folds_to=None) if c == PLACE and is_whole else c for c in COLUMNS]
    whole = cells.Table(columns, [_row(tensor) for tensor in saved])
    return whole if named else whole.without(NAME)


def _row(tensor: SavedTensor) -> list[Cell]:
    texts = (
        str(tensor.node),
        units.size(tensor.bytes),
        tensor.op or "",
        tensor.name,
        f"{list(tensor.shape)} {tensor.dtype}",
        tensor.source,
        tensor.freed_at or "never",
        tensor.why,
    )
    return [Cell(text) for text in texts]


def render_by_hand(parts: Sequence[PartBytes], screen: Screen) -> str:
    """What is held beside what sweeps written by hand keep, part by part, in bytes."""
    table = screen.table("beside reverse sweeps written by hand, in bytes")
    for name in ("part", "held", "with residuals", "difference", "with replay"):
        table.add_column(name, justify="left" if name == "part" else "right", no_wrap=True)
    for part in (*parts, total_of(parts)):
        table.add_row(
            part.part,
            str(part.held_bytes),
            str(part.residual_bytes),
            f"{part.held_bytes - part.residual_bytes:+d}",
            str(part.replay_bytes),
        )
    return screen.render(table)
