"""What was live at the highest point, the largest first, as cells."""

from __future__ import annotations

from collections.abc import Iterable

from ckptcli import units
from ckptcli.measure.memory import LiveTensor
from ckptcli.report.cells import Cell, Column, Table

COLUMNS = (
    Column("why", 0, "text"),
    Column("size", 1),
    Column("node", 2),
    Column("op", 3, "text"),
    Column("shape", 5, "text"),
    Column("made at", 4, "text", folds_to=16),
)


def live_table(tensors: Iterable[LiveTensor], title: str = "") -> Table:
    """A row a storage; without a column for lines of the program where nobody tells them."""
    rows = [_cells(tensor) for tensor in tensors]
    if any(row[-1].text for row in rows):
        return Table(COLUMNS, rows, title)
    return Table(COLUMNS[:-1], [row[:-1] for row in rows], title)


def _cells(tensor: LiveTensor) -> tuple[Cell, ...]:
    return (
        Cell(tensor.why),
        Cell(units.size(tensor.bytes)),
        Cell("" if tensor.node is None else str(tensor.node)),
        Cell(tensor.op or ""),
        Cell(str(list(tensor.shape))),
        Cell(tensor.source),
    )
