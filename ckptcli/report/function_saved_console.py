"""What JAX holds for a function of the user's own, for the eye: the list, and its totals."""

from __future__ import annotations

from ckptcli import units
from ckptcli.measure.function_saved import (
    ARGUMENT,
    COMPUTED,
    LITERAL,
    NOT_HELD,
    TOTALS,
    Residual,
    Residuals,
    totals_of,
)
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.screen import Screen

COLUMNS = (
    Column("size", 0),
    Column("shape", 2, "text", folds_to=9),
    Column("made by", 1, "text", folds_to=9),
    Column("name", 4, "text"),
    Column("made at", 3, "text", folds_to=16),
    Column("function", 6, "text", folds_to=12),
    Column("within", 7, "text", folds_to=9),
)
NAME, WITHIN = COLUMNS[3], COLUMNS[6]
"""Which are left out where they are empty."""


def render_function_saved(strategy: str, held: Residuals | str, screen: Screen) -> str:
    """The table of one strategy, largest first, and what lines, functions and names hold."""
    if isinstance(held, str):
        return screen.render(f"{strategy}: {units.UNKNOWN}: {held}")
    tensors = units.count(held.saved_tensors, "tensor")
    head = f"{strategy}: {tensors}, {units.size(held.saved_bytes)} held"
    head += _left_out(held)
    if not held.held:
        return screen.render(head)
    totals = [table for by in TOTALS if (table := _totals(held, by)) is not None]
    parts = [part for table in totals for part in ("", screen.draw(table))]
    return screen.render(head, "", screen.draw(_table(held)), *parts)


def _left_out(held: Residuals) -> str:
    """`; beside 5 arguments and 2 literals`, which are no memory of its own."""
    kinds = [residual.kind for residual in held.residuals if residual.kind in NOT_HELD]
    parts = [units.count(kinds.count(kind), kind) for kind in (ARGUMENT, LITERAL) if kind in kinds]
    return f"; beside {' and '.join(parts)}" if parts else ""


def _table(held: Residuals) -> cells.Table:
    whole = cells.Table(COLUMNS, [_row(residual) for residual in held.held])
    for column in (WITHIN, NAME):
        if not any(row[COLUMNS.index(column)].text for row in whole.rows):
            whole = whole.without(column)
    return whole


def _row(residual: Residual) -> list[Cell]:
    made = residual.primitive or residual.kind
    texts = (
        units.size(residual.bytes),
        f"{list(residual.shape)} {residual.dtype}",
        made if residual.kind == COMPUTED or made == residual.kind else f"{made}, {residual.kind}",
        residual.name,
        residual.line or residual.source,
        residual.function,
        residual.within,
    )
    return [Cell(text) for text in texts]


def _totals(held: Residuals, by: str) -> cells.Table | None:
    """The sums by line, function or name; None where there is but one, or none has any."""
    totals = totals_of(held, by)
    if not totals or (len(totals) == 1 and by != "name"):
        return None
    columns = (Column("size", 0), Column("tensors", 1), Column(f"by {by}", 0, "text"))
    rows = [[Cell(units.size(t.bytes)), Cell(str(t.tensors)), Cell(t.key)] for t in totals]
    return cells.Table(columns, rows)
