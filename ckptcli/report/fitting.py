"""Which columns of a table fit a screen, and whether there is room for their small print.

Invariants: a column of rank 0 stays; no cell is shortened; what goes is a whole column, or a whole
detail of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from ckptcli.report.cells import Cell, Column, Table

GAP, TIGHT_GAP = 3, 2


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is drawn: cells without details; `is_tight` is whether columns stand close."""

    table: Table
    is_tight: bool


def fitted(table: Table, width: int) -> Fitted:
    """The table as it fits `width`, as far as columns of rank 0 do."""
    shown = _plain(table)
    if _width(shown, tight=False) <= width:
        detailed = _detailed(table, width) if width >= table.details_from else shown
        return Fitted(detailed, is_tight=False)
    shown = replace(shown, columns=[column.narrow for column in shown.columns])
    while _width(shown, tight=True) > width:
        least = max(column.rank for column in shown.columns)
        if least == 0:
            break
        shown = _without(shown, least)
    return Fitted(shown, _width(shown, tight=False) > width)


def _plain(table: Table) -> Table:
    return replace(table, rows=[[Cell(cell.text) for cell in row] for row in table.rows])


def _detailed(table: Table, width: int) -> Table:
    """With the details of as many columns as there is room for, the most important first."""
    shown = _plain(table)
    for i in sorted(range(len(table.columns)), key=lambda i: table.columns[i].rank):
        rows = [
            [Cell(whole[j].whole) if j == i else cell for j, cell in enumerate(row)]
            for row, whole in zip(shown.rows, table.rows)
        ]
        wider = replace(shown, rows=rows)
        if _width(wider, tight=False) <= width:
            shown = wider
    return shown


def _without(table: Table, rank: int) -> Table:
    kept = [i for i, column in enumerate(table.columns) if column.rank != rank]
    rows = [[row[i] for i in kept] for row in table.rows]
    return replace(table, columns=[table.columns[i] for i in kept], rows=rows)


def _width(table: Table, tight: bool) -> int:
    widths = [_column_width(i, column, table.rows) for i, column in enumerate(table.columns)]
    gaps = (TIGHT_GAP if tight else GAP) * (len(widths) - 1)
    return sum(widths) + gaps


def _column_width(index: int, column: Column, rows: Sequence[Sequence[Cell]]) -> int:
    natural = max(map(cell_len, [column.name, *(row[index].text for row in rows)]))
    return natural if column.folds_to is None else min(natural, column.folds_to)
