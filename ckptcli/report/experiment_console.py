"""An experiment for the eye: a table of the measured rounds, then what else was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table

from ckptcli import units
from ckptcli.measure.experiment_record import ExperimentRecord
from ckptcli.report.screen import Screen

SHOWN_FIRST = 6
SHOWN_LAST = 14
"""Of more rows than both together only these are shown."""


def render_experiment(record: ExperimentRecord, screen: Screen) -> str:
    """The screen, ready to print."""
    return screen.render(f"device = {record.device}, {record.title}", *_parts(record, screen))


def _parts(record: ExperimentRecord, screen: Screen) -> Iterator[str | Table]:
    rows = list(record.rounds)
    hidden = len(rows) - SHOWN_FIRST - SHOWN_LAST
    if hidden > 0:
        del rows[SHOWN_FIRST : SHOWN_FIRST + hidden]
    if rows:
        yield _table(rows, screen)
    if hidden > 0:
        yield f"{units.count(hidden, 'measured round')} left out here; --json has all"
    yield from record.selection.split("; ")
    yield ""
    yield from record.sentences
    for sentence in record.wrong:
        yield f"WRONG: {sentence}"
    if record.stopped is not None:
        yield f"stopped: {record.stopped}; what is shown is complete"


def _table(rows: list[Mapping[str, int | float | None]], screen: Screen) -> Table:
    table = screen.table()
    for name in rows[0]:
        header = name.removesuffix("_s").replace("_", " ")
        table.add_column(header, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(name, value) for name, value in row.items()))
    return table


def _cell(name: str, value: int | float | None) -> str:
    if value is None:
        return units.UNKNOWN
    return units.duration(value) if name.endswith("_s") else f"{value:,}"
