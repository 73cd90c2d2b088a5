"""What a PyTorch module of the user's own holds after forward, for the eye."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli import units
from ckptcli.measure.module_saved import Held, ModuleSaved, saved_bytes, totals_by
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.screen import Screen

COLUMNS = (
    Column("size", 0),
    Column("module", 1, "text", folds_to=9),
    Column("shape", 2, "text", folds_to=9),
    Column("made by", 3, "text"),
    Column("made at", 4, "text", folds_to=16),
    Column("held by", 5, "text", folds_to=12),
)


def render_module_saved(
    strategy: str, held: Held, by: str | None, depth: int | None, screen: Screen
) -> str:
    """The list of one strategy, largest first, or with `by` its sums; and the total."""
    if isinstance(held, str):
        return screen.render(f"{strategy}: {units.UNKNOWN}: {held}")
    size = units.size(saved_bytes(held))
    head = f"{strategy}: {units.count(len(held), 'tensor')}, {size} held"
    if not held:
        return screen.render(head)
    table = _list(held) if by is None else _totals(held, by, depth)
    return screen.render(head, "", screen.draw(table))


def _totals(held: Sequence[ModuleSaved], by: str, depth: int | None) -> cells.Table:
    columns = (
        Column("size", 0),
        Column("share", 1),
        Column("tensors", 2),
        Column(f"by {by}", 0, "text", folds_to=16),
    )
    rows = [
        [Cell(units.size(t.bytes)), Cell(f"{t.share:.1%}"), Cell(str(t.tensors)), Cell(t.key)]
        for t in totals_by(held, by, depth)
    ]
    return cells.Table(columns, rows)


def _list(held: Sequence[ModuleSaved]) -> cells.Table:
    return cells.Table(COLUMNS, [_row(storage) for storage in held])


def _row(storage: ModuleSaved) -> list[Cell]:
    texts = (
        units.size(storage.bytes),
        storage.module,
        f"{list(storage.shape)} {storage.dtype}",
        storage.op,
        storage.source or storage.library,
        ", ".join(storage.ops),
    )
    return [Cell(text) for text in texts]
