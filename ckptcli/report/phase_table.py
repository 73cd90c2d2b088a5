"""What is live before and after each phase of a step of training, as cells.

Made for records that have a row of a PyTorch module that is trained with an optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli import units
from ckptcli.measure.memory import PhaseMemory
from ckptcli.measure.record import RunRecord
from ckptcli.report.cells import Cell, Column, Table
from ckptcli.report.looks import bytes_by_look

COLUMNS = (
    Column("strategy", 0, "text"),
    Column("phase", 0, "text"),
    Column("before", 3),
    Column("peak", 1),
    Column("after", 2),
    Column("live after it", 4, "text", folds_to=24),
)


def phase_table(record: RunRecord) -> Table | None:
    """A row for each phase of each strategy; None where nothing has an optimizer."""
    rows = list(_rows(record))
    return Table(COLUMNS, rows) if rows else None


def _rows(record: RunRecord) -> Iterator[tuple[Cell, ...]]:
    for row in record.rows:
        if row.memory is None or row.memory.optimizer_bytes is None:
            continue
        name = record.name_of(row)
        for phase in row.memory.phases:
            yield (Cell(name), *_cells(phase))
            name = ""


def _cells(phase: PhaseMemory) -> tuple[Cell, ...]:
    after = ", ".join(
        f"{why} {units.size(n)}" for why, n in bytes_by_look(phase.after_bytes).items()
    )
    return (
        Cell(phase.phase),
        Cell(units.size(sum(phase.before_bytes.values()))),
        Cell(units.size(phase.peak_bytes)),
        Cell(units.size(sum(phase.after_bytes.values()))),
        Cell(after),
    )
