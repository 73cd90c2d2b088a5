"""The geometry of pictures: data in, points out; nothing is drawn here.

The x axis of a timeline is the ops of the pass in order, forward and backward apart, so that passes
of different lengths share the forward's and the border between the two. A trace that was cut has
one point for several ops; `Trace.ops_per_point` says how many.

Invariants: no column is lower than an op that it stands for; the same data give the same points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ckptcli.measure.memory import WHOLE_MODULE, PeakLive
from ckptcli.measure.record import RunRecord
from ckptcli.measure.trace import TimelinePoint, Trace

MOST_COLUMNS = 360
"""More columns than this are narrower than a reader can point at."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The live bytes of one pass, without the workspace of kernels.

    Attributes:
        stride: how many ops a point stands for.
        series: the place of its row in the record, which gives its colour.
    """

    name: str
    forward: Sequence[TimelinePoint]
    backward: Sequence[TimelinePoint]
    stride: int = 1
    series: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """How many ops the longest forward and the longest backward have: the axis of all."""

    forward: int
    backward: int

    @property
    def ops(self) -> int:
        return self.forward + self.backward


@dataclass(frozen=True, slots=True)
class Column:
    """Ops `first` to `last` of a part, from 0, and the highest of them; None: the pass is over.

    `recomputed` is the share of them that compute a value again.
    """

    first: int
    last: int
    point: TimelinePoint | None
    recomputed: float = 0.0


@dataclass(frozen=True, slots=True)
class Columns:
    """A pass in columns: those of the forward, then those of everything after it."""

    forward: Sequence[Column]
    backward: Sequence[Column]

    @property
    def points(self) -> list[TimelinePoint | None]:
        """The highest op of each column."""
        return [column.point for column in (*self.forward, *self.backward)]

    @property
    def highest(self) -> int | None:
        """The first column that is as high as any."""
        heights = [-1 if point is None else point.high_bytes for point in self.points]
        return heights.index(max(heights)) if heights else None


def curves_of(record: RunRecord) -> list[Curve]:
    """A curve for each row whose pass is known op by op."""
    return [
        curve(record.label(row), row.trace, i)
        for i, row in enumerate(record.rows)
        if row.trace is not None and row.trace.timeline
    ]


def curve(name: str, trace: Trace, series: int = 0) -> Curve:
    """A trace as forward and the rest, which begins with the first op that is not forward."""
    points = trace.timeline
    border = next((i for i, p in enumerate(points) if p.phase != "forward"), len(points))
    return Curve(name, points[:border], points[border:], trace.ops_per_point, series)


def live_title(known: Iterable[PeakLive]) -> str:
    """What the lists and bars of what was live are called: of a module it is the whole pass's."""
    which = "the pass" if any(live.module for live in known) else "backward"
    return f"live at the highest point of {which}"


def live_when_highest(record: RunRecord) -> list[tuple[int, str, PeakLive]]:
    """Of each row that tells: its place in the record, its name, and what was live."""
    known = [(i, row, row.memory) for i, row in enumerate(record.rows) if row.memory is not None]
    return [
        (i, record.label(row), memory.peak_live)
        for i, row, memory in known
        if memory.peak_live is not None and memory.peak_live.total_bytes
    ]


def during(phase: str, module: str) -> str:
    """`in the backward of `layers.3``, `while `layers.3` is computed again`."""
    part = "the module itself" if module == WHOLE_MODULE else f"`{module}`"
    if phase == "step":
        return "in the optimizer's step"
    if phase == "recompute":
        return f"while {part} is computed again"
    return f"in the {phase} of {part}"


def op_text(point: TimelinePoint) -> str:
    """`backward of mul, node 16`."""
    op = point.op or "the pass"
    if point.module:
        return f"{op} {during(point.phase, point.module)}"
    verb = {"forward": op, "recompute": f"{op} again"}.get(point.phase, f"backward of {op}")
    return verb if point.node is None else f"{verb}, node {point.node}"


def common_span(curves: Iterable[Curve]) -> Span:
    """The axis that has room for every curve."""
    known = list(curves)
    return Span(
        max((len(c.forward) * c.stride for c in known), default=0),
        max((len(c.backward) * c.stride for c in known), default=0),
    )


def highest_point(timeline: Sequence[TimelinePoint]) -> TimelinePoint | None:
    """The first op during which as much was live as ever."""
    return max(timeline, key=lambda point: point.high_bytes, default=None)


def resample(drawn: Curve, columns: int, span: Span | None = None) -> Columns:
    """The curve in at most `columns` columns, at least one for a part that has ops.

    With a `span`, curves of one picture get the same columns.
    """
    axis = span or common_span([drawn])
    ahead = _forward_columns(axis, columns)
    behind = max(1, min(columns, axis.ops) - ahead)
    return Columns(
        _columns(drawn.forward, drawn.stride, axis.forward, ahead),
        _columns(drawn.backward, drawn.stride, axis.backward, behind),
    )


def _forward_columns(axis: Span, columns: int) -> int:
    wanted = min(columns, axis.ops)
    share = round(wanted * axis.forward / axis.ops) if axis.ops else 0
    return max(1, min(share, wanted - (axis.backward > 0)))


def _columns(
    points: Sequence[TimelinePoint], ops_per_point: int, ops: int, columns: int
) -> tuple[Column, ...]:
    count = min(ops, columns)
    edges = [ops * i // count for i in range(count + 1)] if count else []
    return tuple(
        _column(first, stop - 1, points[first // ops_per_point : (stop - 1) // ops_per_point + 1])
        for first, stop in pairwise(edges)
    )


def _column(first: int, last: int, points: Sequence[TimelinePoint]) -> Column:
    again = sum(point.phase == "recompute" for point in points)
    return Column(first, last, highest_point(points), again / max(1, len(points)))


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from values to positions."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Box:
    """Where a picture has its axes."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Slot:
    """A column of the picture and what each curve has there, in their order."""

    x: float
    width: float
    part: str
    columns: Sequence[Column]


@dataclass(frozen=True, slots=True)
class Mark:
    """A point to name: where it is, and where its name goes."""

    x: float
    y: float
    label_x: float
    label_y: float


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: stretches of corners, and its highest op."""

    name: str
    series: int
    stretches: Sequence[Sequence[tuple[float, float]]]
    highest: TimelinePoint
    mark: Mark


@dataclass(frozen=True, slots=True)
class TimelineChart:
    """A memory timeline, ready to draw."""

    box: Box
    span: Span
    border_x: float
    height: Scale
    ticks: Sequence[int]
    slots: Sequence[Slot]
    lines: Sequence[Line]


def timeline_chart(
    curves: Sequence[Curve], box: Box, label_widths: Sequence[float]
) -> TimelineChart:
    """Place the curves, each with at least one op, on common axes.

    `label_widths` is the room that the names of the highest ops take; none, if they have no names.
    """
    span = common_span(curves)
    sampled = [resample(drawn, MOST_COLUMNS, span) for drawn in curves]
    most = max(p.high_bytes for columns in sampled for p in columns.points if p is not None)
    headroom = 1.07 + 0.06 * len(label_widths)
    height = Scale(0.0, max(1.0, most * headroom), box.bottom, box.top)
    across = Scale(0.0, max(1, span.ops), box.left, box.right)
    slots = [
        *_slots("forward", [columns.forward for columns in sampled], across, 0),
        *_slots("backward", [columns.backward for columns in sampled], across, span.forward),
    ]
    places = [_highest_place(columns, slots, height) for columns in sampled]
    widths = label_widths or [0.0] * len(places)
    marks = place_marks([(x, y) for x, y, _ in places], widths, box)
    return TimelineChart(
        box=box,
        span=span,
        border_x=across(span.forward),
        height=height,
        ticks=byte_ticks(height.high),
        slots=slots,
        lines=[
            Line(drawn.name, drawn.series, _stretches(i, slots, height), place[2], mark)
            for i, (drawn, place, mark) in enumerate(zip(curves, places, marks))
        ],
    )


def _slots(part: str, parts: Sequence[Sequence[Column]], across: Scale, offset: int) -> list[Slot]:
    slots = []
    for columns in zip(*parts):
        start, end = across(offset + columns[0].first), across(offset + columns[0].last + 1)
        slots.append(Slot(start, end - start, part, columns))
    return slots


def _highest_place(
    columns: Columns, slots: Sequence[Slot], height: Scale
) -> tuple[float, float, TimelinePoint]:
    index = columns.highest or 0
    point = columns.points[index]
    assert point is not None, "a curve has at least one op"
    return slots[index].x + slots[index].width / 2, height(point.high_bytes), point


def _stretches(index: int, slots: Sequence[Slot], height: Scale) -> list[list[tuple[float, float]]]:
    """The corners of a step line; a gap between the slots that a curve fills begins a new one."""
    stretches: list[list[tuple[float, float]]] = []
    end = -math.inf
    for slot in slots:
        point = slot.columns[index].point
        if point is None:
            continue
        y = height(point.high_bytes)
        if slot.x > end + 1e-6:
            stretches.append([])
        stretches[-1] += [(slot.x, y), (slot.x + slot.width, y)]
        end = slot.x + slot.width
    return stretches


LABEL_HEIGHT = 14.0
LABEL_GAP = 7.0


DOT = 5.0


def place_marks(
    points: Sequence[tuple[float, float]], widths: Sequence[float], box: Box
) -> list[Mark]:
    """A name for each point, above it where there is room, over no other name or point."""
    taken: list[tuple[float, float, float]] = []
    marks: dict[int, Mark] = {}
    for i in sorted(range(len(points)), key=lambda i: points[i][1]):
        (x, y), width = points[i], widths[i]
        others = [(px - DOT, py + DOT, 2 * DOT) for px, py in points if (px, py) != (x, y)]
        label_x = min(max(x - width / 2, box.left + 2), max(box.left + 2, box.right - width))
        label_y = _free_height(label_x, y - LABEL_GAP, width, [*taken, *others], box)
        taken.append((label_x, label_y, width))
        marks[i] = Mark(x, y, label_x, label_y)
    return [marks[i] for i in range(len(points))]


def _free_height(
    x: float, y: float, width: float, taken: Sequence[tuple[float, float, float]], box: Box
) -> float:
    """The height next to `y` at which a name of this width covers nothing; `y` if none is."""
    rows = int((box.bottom - box.top) // LABEL_HEIGHT)
    steps = sorted(range(-rows, rows + 1), key=lambda step: (abs(step), step > 0))
    for step in steps:
        wanted = y + step * LABEL_HEIGHT
        inside = box.top + LABEL_HEIGHT <= wanted <= box.bottom - 2
        if inside and not any(_cover(x, wanted, width, other) for other in taken):
            return wanted
    return y


def _cover(x: float, y: float, width: float, other: tuple[float, float, float]) -> bool:
    other_x, other_y, other_width = other
    return abs(y - other_y) < LABEL_HEIGHT and x < other_x + other_width and other_x < x + width


def byte_ticks(most_bytes: float, most_ticks: int = 7) -> list[int]:
    """Multiples of a power of two from 0 up to `most_bytes`, at most so many over 0."""
    step = 2 ** max(0, math.ceil(math.log2(max(1.0, most_bytes / most_ticks))))
    return list(range(0, math.floor(most_bytes) + 1, step))


def decimal_ticks(most: float, wanted: int = 4) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from 0 up to `most`."""
    return decimal_ticks_between(0.0, most, wanted)


def decimal_ticks_between(low: float, high: float, wanted: int = 4) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between both, which differ."""
    least = (high - low) / wanted
    magnitude = 10.0 ** math.floor(math.log10(least))
    step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= least * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]
