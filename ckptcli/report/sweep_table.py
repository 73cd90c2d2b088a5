"""A sweep as tables: one a metric, a row a point and a column a strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ckptcli import units
from ckptcli.measure.point import shown_name
from ckptcli.measure.row import Row
from ckptcli.report.cells import Cell, Column, Table
from ckptcli.sweep.result import PointResult, SweepResult, shown

ABSENT = "-"


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a row.

    Attributes:
        title: what stands above its table.
        cell: the figure.
        is_time: whether points of different machines are not to be compared in it.
    """

    title: str
    cell: Callable[[Row], Cell]
    is_time: bool = False


def _time(row: Row) -> Cell:
    known = row.estimate("total")
    if known is None:
        return Cell(units.UNKNOWN)
    middle, _, bracket = units.interval(known.median, known.low, known.high).partition(" [")
    return Cell(middle, f"[{bracket}")


def _ratio(row: Row) -> Cell:
    known = (row.ratios or {}).get("total")
    if known is None:
        return Cell("1.00x" if row.judgement is None and row.samples else units.UNKNOWN)
    return Cell(units.ratio(known.median), known.verdict)


def _count(row: Row) -> Cell:
    nodes = row.recomputed_nodes
    return Cell(units.UNKNOWN if nodes is None else str(nodes))


def _gradient(row: Row) -> Cell:
    """Of a program with one number to differentiate by, to every digit."""
    known = None if row.outcome is None else row.outcome.gradient
    return Cell("" if known is None else repr(known))


METRICS = (
    Metric("peak", lambda row: Cell(units.size(row.peak_bytes))),
    Metric("saved for backward", lambda row: Cell(units.size(row.saved_bytes))),
    Metric("recomputed", _count),
    Metric("gradient", _gradient),
    Metric("total time", _time, is_time=True),
    Metric("total time against the reference's", _ratio, is_time=True),
)


def tables(sweep: SweepResult) -> Iterator[Table]:
    """A table a metric that any row has; times where there are some."""
    measured = sweep.with_status("measured")
    for metric in METRICS if measured else ():
        if _is_known(metric, measured) and (sweep.is_timed or not metric.is_time):
            yield _table(sweep, metric, measured)


def _is_known(metric: Metric, measured: list[PointResult]) -> bool:
    rows = (row for point in measured for row in point.rows().values())
    return any(metric.cell(row).text not in ("", units.UNKNOWN) for row in rows)


def _table(sweep: SweepResult, metric: Metric, measured: list[PointResult]) -> Table:
    machines = sweep.machines
    has_hosts = metric.is_time and len(machines) > 1
    names = sweep.names
    columns = [
        *(Column(shown_name(axis), 0, "text") for axis in sweep.axes),
        *([Column("machine", 1, "text")] if has_hosts else []),
        *(Column(name, 2) for name in names),
    ]
    rows = []
    for point in measured:
        known = point.rows()
        rows.append(
            [
                *(Cell(shown(point.point[axis])) for axis in sweep.axes),
                *([Cell(machines.get(point.machine or "", units.UNKNOWN))] if has_hosts else []),
                *(metric.cell(known[name]) if name in known else Cell(ABSENT) for name in names),
            ]
        )
    return Table(columns, rows, metric.title)


def sentences(sweep: SweepResult) -> Iterator[str]:
    """What the tables do not have: failures, why a row is missing, several machines."""
    for point in sweep.with_status("failed"):
        yield f"{point.title or 'the point'} failed: {point.reason}"
    for point in sweep.points:
        for name, why in point.missing().items():
            yield f"{point.title} {name}: {why}".strip()
    not_reached = sweep.with_status("not reached")
    if not_reached:
        yield f"{units.count(len(not_reached), 'point')} not reached"
    machines = sweep.machines
    if sweep.is_timed and len(machines) > 1:
        yield (
            f"measured on {len(machines)} machines, {', '.join(machines.values())}: times of two "
            "of them are not to be compared"
        )


def heading(sweep: SweepResult) -> str:
    """What was swept over, and how far it came."""
    done = len(sweep.with_status("measured"))
    part = "" if done == len(sweep.points) else f"{done} of "
    return f"{sweep.title}: {part}{units.count(len(sweep.points), 'point')}"
