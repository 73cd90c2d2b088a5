"""An experiment for the eye: a table of the measured rounds, then what else was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.measure.experiment_record import ExperimentRecord
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.screen import Screen

LONG_NAME = 12

SHOWN_FIRST = 6
SHOWN_LAST = 14
"""Of more rows than both together only these are shown."""


def render_experiment(record: ExperimentRecord, screen: Screen) -> str:
    """The screen, ready to print."""
    return screen.render(f"device = {record.device}, {record.title}", *_parts(record, screen))


def _parts(record: ExperimentRecord, screen: Screen) -> Iterator[str | Text | Table]:
    rows = list(record.rounds)
    hidden = len(rows) - SHOWN_FIRST - SHOWN_LAST
    if hidden > 0:
        del rows[SHOWN_FIRST : SHOWN_FIRST + hidden]
    if rows:
        yield from ("", _table(rows, screen), "")
    if hidden > 0:
        yield f"{units.count(hidden, 'measured round')} left out here; --json has all"
    yield from map(screen.wrapped, record.selection.split("; "))
    yield ""
    yield from map(screen.wrapped, record.sentences)
    for sentence in record.wrong:
        yield screen.wrapped(f"WRONG: {sentence}")
    if record.stopped is not None:
        yield screen.wrapped(f"stopped: {record.stopped}; what is shown is complete")


def _table(rows: list[Mapping[str, int | float | None]], screen: Screen) -> Table:
    columns = [
        Column(name.removesuffix("_s").replace("_", " "), _rank(rank, name))
        for rank, name in enumerate(rows[0])
    ]
    scales = {
        name: units.time_scale(row[name] for row in rows) for name in rows[0] if name.endswith("_s")
    }
    shown = [
        [Cell(_cell(value, name in scales, scales.get(name))) for name, value in row.items()]
        for row in rows
    ]
    return screen.draw(cells.Table(columns, shown))


def _rank(position: int, name: str) -> int:
    """In their order, but that a long head goes before short ones."""
    return position if len(name) < LONG_NAME else position + LONG_NAME


def _cell(value: int | float | None, is_time: bool, scale: units.TimeScale | None) -> str:
    if value is None:
        return units.UNKNOWN
    return units.duration(value, scale) if is_time else f"{value:,}"
