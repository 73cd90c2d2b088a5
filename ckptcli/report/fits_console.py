"""What fits, for the eye: a row a strategy, then how each is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table as Drawn
from rich.text import Text

from ckptcli import units
from ckptcli.measure.point import shown_name
from ckptcli.report.cells import Cell, Column, Table
from ckptcli.report.screen import Screen
from ckptcli.sweep.fitting.answer import BEST_PLAN, Fit


def render_fits(
    title: str, over: str, limit_bytes: int, fits: Sequence[Fit], screen: Screen
) -> str:
    """The whole screen, ready to print."""
    heading = f"{title}: the largest {shown_name(over)} within {units.exact_size(limit_bytes)}"
    parts: list[str | Text | Drawn] = [screen.wrapped(heading), ""]
    parts += [screen.draw(_table(over, fits)), ""]
    parts += [screen.wrapped(line) for found in fits for line in _lines(over, found)]
    return screen.render(*parts)


def _table(over: str, fits: Sequence[Fit]) -> Table:
    columns = [
        Column("strategy", 0, "text"),
        Column(f"largest {shown_name(over)}", 0),
        Column("peak", 1),
        Column("peak at the next", 2),
        Column("known", 1, "text"),
        Column("time of a pass", 3),
    ]
    rows = [_row(found) for found in fits]
    if all(found.time is None for found in fits):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return Table(columns, rows, details_from=100)


def _row(found: Fit) -> list[Cell]:
    time = found.time
    return [
        Cell(found.strategy),
        Cell(units.UNKNOWN if found.largest is None else str(found.largest)),
        _size(found.peak_bytes),
        _size(found.next_peak_bytes),
        Cell(found.how),
        Cell(
            units.UNKNOWN
            if time is None
            else units.interval(time.time_s, time.low_s, time.high_s)
            + (", extrapolated" if time.is_extrapolated else "")
        ),
    ]


def _size(size_bytes: int | None) -> Cell:
    """To the byte where there is room, since a byte decides."""
    known, exact = units.size(size_bytes), f"{size_bytes} B"
    return Cell(known, "" if size_bytes is None or known == exact else exact)


def _lines(over: str, found: Fit) -> Iterator[str]:
    name, strategy = shown_name(over), found.strategy
    if found.law is not None:
        what = "the least that a plan takes" if strategy == BEST_PLAN else "ledger's peak"
        yield f"{strategy}: {what} = {found.law.text} B"
    if found.word is not None:
        yield f"{strategy}: at {name} = {found.largest} it is -s {found.word}"
    if found.largest == 0:
        yield f"{strategy} does not fit at the smallest {name}"
    elif found.largest is None:
        yield f"{strategy}: {found.why}"
    elif not found.proven:
        doubt = "may not be the largest" if found.how == "planned" else "was not measured"
        why = found.why.removeprefix(f"{name} = {found.largest}: ")
        yield f"{strategy}: {name} = {found.largest} {doubt}: {why}"
