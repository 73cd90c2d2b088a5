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
    Column("module", 2, "text", folds_to=12),
    Column("op", 3, "text", folds_to=16),
    Column("shape", 5, "text"),
    Column("made at", 4, "text", folds_to=16),
    Column("held by", 6, "text", folds_to=12),
)


def live_table(tensors: Iterable[LiveTensor], title: str = "") -> Table:
    """A row a storage; of a module its parts instead of nodes, and no column that nobody fills."""
    rows = [_cells(tensor) for tensor in tensors]
    told = {column.name for i, column in enumerate(COLUMNS) if any(row[i].text for row in rows)}
    hidden = {"node" if "module" in told else "module", *({"made at", "held by"} - told)}
    kept = [i for i, column in enumerate(COLUMNS) if column.name not in hidden]
    return Table([COLUMNS[i] for i in kept], [[row[i] for i in kept] for row in rows], title)


def _cells(tensor: LiveTensor) -> tuple[Cell, ...]:
    return (
        Cell(tensor.why),
        Cell(units.size(tensor.bytes)),
        Cell("" if tensor.node is None else str(tensor.node)),
        Cell(tensor.module),
        Cell(tensor.op or ""),
        Cell(str(list(tensor.shape))),
        Cell(tensor.source),
        Cell(", ".join(tensor.held_by)),
    )
