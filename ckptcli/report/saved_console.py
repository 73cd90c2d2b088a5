"""What is held after forward, for the eye: a table a strategy, largest first, with totals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ckptcli import units
from ckptcli.measure.saved import PartBytes, SavedTensor, total_of
from ckptcli.report.screen import Screen

WIDE = 100
"""From here on lines of the program stand whole."""


def render_saved(strategy: str, saved: Sequence[SavedTensor], screen: Screen) -> str:
    """The table of one strategy, ready to print."""
    total_bytes = sum(tensor.bytes for tensor in saved)
    title = f"{strategy}: {units.count(len(saved), 'tensor')}, {units.size(total_bytes)} held"
    if not saved:
        return screen.render(title)
    return screen.render(title, _table(saved, screen))


def _table(saved: Sequence[SavedTensor], screen: Screen) -> Table:
    table = screen.table()
    for name in ("node", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("op", no_wrap=True)
    named = any(tensor.name for tensor in saved)
    if named:
        table.add_column("name", no_wrap=True)
    table.add_column("shape", overflow="fold")
    table.add_column("made at", no_wrap=screen.width >= WIDE, overflow="fold")
    for name in ("freed after", "why"):
        table.add_column(name, overflow="fold")
    for tensor in saved:
        shape = f"{list(tensor.shape)} {tensor.dtype}"
        table.add_row(
            str(tensor.node),
            units.size(tensor.bytes),
            tensor.op or "",
            *([tensor.name] if named else []),
            shape,
            tensor.source,
            tensor.freed_at or "never",
            tensor.why,
        )
    return table


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
