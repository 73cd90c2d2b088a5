"""The geometry of a sweep's pictures: peak and time over a size, a line a strategy.

Both axes are logarithmic, where a power law is a straight line. The size is the axis with the most
values, the last of several; points that differ in anything else are panels of their own.

Invariant: the same sweep gives the same points; a figure that is not known or not above 0 has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ckptcli import units
from ckptcli.measure.point import shown_name, shown_value
from ckptcli.measure.row import Row
from ckptcli.sweep.result import PointResult, SweepResult, shown

MOST_PANELS = 24
"""Of each metric; a sweep of many more values of a second axis has the first ones drawn."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is drawn upward: title, figure, how a tick is written, what ticks are powers of, and
    whether figures of two machines are on lines of their own.
    """

    title: str
    figure: Callable[[Row], float | None]
    text: Callable[[float], str]
    base: float
    by_machine: bool = False


METRICS = (
    Metric("peak", lambda row: row.peak_bytes, lambda size: units.size(int(size)), 4.0),
    Metric("total time", lambda row: row.median_s("total"), units.duration, 10.0, True),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One strategy: its place among all, which gives its colour, and its points, going right."""

    name: str
    series: int
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture.

    Attributes:
        metric: what is drawn.
        title: that, and where the points stand otherwise.
        across: the name of the size.
        text: how a figure is written.
        base: ticks upward are powers of it.
    """

    metric: str
    title: str
    across: str
    lines: Sequence[Line]
    text: Callable[[float], str]
    base: float

    @property
    def ends(self) -> tuple[float, float, float, float]:
        """Smallest and largest size, smallest and largest figure."""
        xs, ys = zip(*(point for line in self.lines for point in line.points))
        return min(xs), max(xs), min(ys), max(ys)

    @property
    def sizes(self) -> list[float]:
        """The sizes to write below, at most nine."""
        found = sorted({x for line in self.lines for x, _ in line.points})
        step = -(-len(found) // 9)
        return found[::step]

    @property
    def figures(self) -> list[float]:
        """The powers of the base between the ends; the ends themselves where there are few."""
        _, _, low, high = self.ends
        first, last = (math.log(end, self.base) for end in (low, high))
        powers = [self.base**k for k in range(math.ceil(first), math.floor(last) + 1)]
        step = -(-len(powers) // 8) or 1
        return powers[::step] if len(powers) > 1 else sorted({low, high})


def panels(sweep: SweepResult) -> list[Panel]:
    """A panel for each metric and each place beside the size; none without two sizes."""
    measured = sweep.with_status("measured")
    axis = _axis(sweep, measured)
    if axis is None:
        return []
    return [
        panel
        for metric in METRICS
        for where, points in list(_groups(sweep, measured, axis).items())[:MOST_PANELS]
        if (panel := _panel(sweep, metric, axis, where, points)) is not None
    ]


def size_text(value: float) -> str:
    """A size below the axis."""
    return shown_value(value)


def _axis(sweep: SweepResult, measured: Sequence[PointResult]) -> str | None:
    counts = {
        axis: len({point.point[axis] for point in measured})
        for axis in sweep.axes
        if all(_is_positive(point.point[axis]) for point in measured)
    }
    best = max(reversed(counts), key=lambda axis: counts[axis], default=None)
    return best if best is not None and counts[best] > 1 else None


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


def _groups(
    sweep: SweepResult, measured: Sequence[PointResult], axis: str
) -> Mapping[str, list[PointResult]]:
    others = [other for other in sweep.axes if other != axis]
    found: dict[str, list[PointResult]] = {}
    for point in measured:
        where = ", ".join(f"{shown_name(o)} = {shown(point.point[o])}" for o in others)
        found.setdefault(where, []).append(point)
    return found


def _panel(
    sweep: SweepResult, metric: Metric, axis: str, where: str, points: Sequence[PointResult]
) -> Panel | None:
    machines = sweep.machines if metric.by_machine and len(sweep.machines) > 1 else {"": ""}
    lines = [
        line
        for machine, called in machines.items()
        for line in _lines(sweep.names, metric, axis, points, machine, called)
    ]
    title = f"{metric.title}, {where}" if where else metric.title
    sizes = {x for line in lines for x, _ in line.points}
    if len(sizes) < 2:
        return None
    return Panel(metric.title, title, shown_name(axis), lines, metric.text, metric.base)


def _lines(
    names: Sequence[str],
    metric: Metric,
    axis: str,
    points: Sequence[PointResult],
    machine: str,
    called: str,
) -> Iterator[Line]:
    """Those of one machine; of all without one."""
    for series, name in enumerate(names):
        found = [
            (float(point.point[axis]), float(figure))
            for point in points
            if not machine or point.machine == machine
            if (row := point.rows().get(name)) is not None
            if (figure := metric.figure(row))
        ]
        if found:
            yield Line(f"{name}, {called}" if machine else name, series, sorted(found))
