"""The memory timeline as SVG: a step line a strategy, named where most is live, a text at each op.

Invariant: the same record gives the same bytes; there are no ids and no dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ckptcli import units
from ckptcli.measure.record import RunRecord
from ckptcli.measure.trace import NodeFate, TimelinePoint
from ckptcli.report.charts import (
    LABEL_GAP,
    LABEL_HEIGHT,
    Box,
    Column,
    Curve,
    Line,
    Mark,
    Slot,
    TimelineChart,
    curves_of,
    highest_point,
    op_text,
    timeline_chart,
)
from ckptcli.report.drawing.markup import Markup, below, element, joined, number
from ckptcli.report.drawing.style import (
    INK,
    PAPER,
    QUIET,
    picture_style,
    series_class,
    series_color,
    series_dash,
)
from ckptcli.report.surroundings import heading
from ckptcli.visible import visible

WIDTH = 800
PLOT_HEIGHT = 250
LEFT, RIGHT = 66, 12
LEGEND_ROW = 19
RUG_GAP, RUG_ROW = 10, 7
CHARACTER = 7.0
"""About the width of a character of a label, for keeping labels apart."""

MOST_NAMED = 4
"""With more strategies the legend alone names their highest ops: names would hide the lines."""

Nodes = dict[int, NodeFate]


@dataclass(frozen=True, slots=True)
class Picture:
    """A timeline as SVG, and how high it is."""

    svg: Markup
    height: float


def timelines_svg(record: RunRecord) -> Markup | None:
    """A file with the picture of each program below each other, under its title; None without."""
    parts = record.parts
    known = (timeline(part, alone=True, is_root=len(parts) == 1) for part in parts)
    pictures = [picture for picture in known if picture is not None]
    if len(parts) == 1 or not pictures:
        return pictures[0].svg if pictures else None
    tops = [*accumulate((picture.height for picture in pictures), initial=0.0)]
    return element(
        "svg",
        *(
            element("g", picture.svg, transform=f"translate(0 {number(top)})")
            for picture, top in zip(pictures, tops)
        ),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {number(tops[-1])}",
        width=WIDTH,
        height=tops[-1],
        role="group",
        aria_label="live bytes over the ops of the pass, a picture a program",
    )


def timeline_svg(record: RunRecord, *, alone: bool) -> Markup | None:
    """The picture of one program, or None where no strategy has a timeline."""
    picture = timeline(record, alone=alone)
    return None if picture is None else picture.svg


def timeline(record: RunRecord, *, alone: bool, is_root: bool = True) -> Picture | None:
    """The picture of one program, or None where no strategy has a timeline.

    `alone` is for a file of its own: with style, paper and title, and the name space at its root.
    """
    curves = curves_of(record)
    if not curves:
        return None
    names = [_name(drawn) for drawn in curves] if len(curves) <= MOST_NAMED else []
    head = 26 if alone else 0
    top = head + LEGEND_ROW * len(curves) + 12
    box = Box(LEFT, top, WIDTH - RIGHT, top + PLOT_HEIGHT)
    chart = timeline_chart(curves, box, [text_width(name) for name in names])
    rugs = _rugs(chart)
    height = box.bottom + 46 + (RUG_GAP + RUG_ROW * len(rugs) if rugs else 0)
    first = record.rows[curves[0].series].memory
    floor_bytes = 0 if first is None else first.params_input_bytes or 0
    nodes = [_nodes(record, drawn) for drawn in curves]
    svg = element(
        "svg",
        *(_frame(record, height) if alone else ()),
        *_legend(chart, head),
        *_axes(chart),
        *_floor(chart, floor_bytes),
        *(_step_line(line) for line in chart.lines),
        *_drawn_rugs(rugs, box),
        *_bottom(chart, height),
        *map(_dot, chart.lines),
        *(label(line.series, line.mark, text) for line, text in zip(chart.lines, names)),
        *(_slot(slot, chart, nodes) for slot in chart.slots),
        xmlns="http://www.w3.org/2000/svg" if alone and is_root else None,
        viewBox=f"0 0 {WIDTH} {number(height)}",
        width=WIDTH if alone else None,
        height=height if alone else None,
        role="img",
        aria_label="live bytes over the ops of the pass; "
        + "; ".join(highest_text(line.name, line.highest) for line in chart.lines),
        font_size=12,
    )
    return Picture(svg, height)


def _name(drawn: Curve) -> str:
    highest = highest_point([*drawn.forward, *drawn.backward])
    return f"{drawn.name} {units.size(None if highest is None else highest.high_bytes)}"


def _nodes(record: RunRecord, drawn: Curve) -> Nodes:
    trace = record.rows[drawn.series].trace
    return {} if trace is None else {node.node: node for node in trace.nodes}


def trimmed(text: str) -> str:
    """`64.0 KiB` as `64 KiB`, `12.50ms` as `12.5ms`."""
    match = re.fullmatch(r"(\d+\.\d+)(.*)", text)
    return f"{float(match.group(1)):g}{match.group(2)}" if match else text


def size_label(size_bytes: int) -> str:
    """A size at an axis."""
    return "0" if size_bytes == 0 else trimmed(units.size(size_bytes))


def words(x: float, y: float, text: str, **attributes: str | float | None) -> Markup:
    """Text at a place, quiet unless another class is given."""
    kind = attributes.pop("class_", "quiet")
    fill = INK if str(kind).startswith("ink") else QUIET
    return element("text", text, x=x, y=y, class_=kind, fill=fill, **attributes)


def rule(
    x1: float, y1: float, x2: float, y2: float, *, dash: str | None = None, faint: bool = False
) -> Markup:
    """A thin straight line."""
    return element(
        "line",
        x1=x1,
        y1=y1,
        x2=x2,
        y2=y2,
        class_="rule",
        stroke=QUIET,
        stroke_opacity=0.25 if faint else None,
        stroke_dasharray=dash,
    )


def text_width(text: str) -> float:
    """How wide a label is, about."""
    return len(visible(text)) * CHARACTER


def label(index: int, mark: Mark, text: str) -> Markup:
    """The name of a point in its colour, to be read over lines; a thread leads to it from afar."""
    far = abs(mark.y - mark.label_y) > LABEL_GAP + LABEL_HEIGHT
    thread = rule(mark.x, mark.y, mark.x, mark.label_y) if far else Markup("")
    name = element(
        "text",
        text,
        x=mark.label_x,
        y=mark.label_y,
        class_=f"area halo {series_class(index)}",
        fill=series_color(index),
        stroke=PAPER,
        stroke_width=4,
        stroke_linejoin="round",
        paint_order="stroke",
        font_weight=600,
        font_size=11.5,
    )
    return joined([thread, name])


def _frame(record: RunRecord, height: float) -> Iterator[Markup]:
    yield element("style", Markup(picture_style()))
    yield element("rect", class_="paper", fill=PAPER, width=WIDTH, height=height)
    yield words(
        8, 20, f"Live bytes, {heading(record)}", class_="ink", font_weight=600, font_size=14
    )


def highest_text(name: str, point: TimelinePoint | None) -> str:
    """How much is live at most, and during which op."""
    if point is None:
        return name
    return f"{name}: at most {units.size(point.high_bytes)}, {op_text(point)}"


def _legend(chart: TimelineChart, head: float) -> Iterator[Markup]:
    for i, line in enumerate(chart.lines):
        y = head + LEGEND_ROW * (i + 1) - 4
        yield _stroke(line.series, f"M{LEFT} {number(y - 4)}h30")
        yield words(LEFT + 38, y, highest_text(line.name, line.highest), class_="ink")


def _stroke(index: int, path: str) -> Markup:
    return element(
        "path",
        d=path,
        class_=f"line {series_class(index)}",
        fill="none",
        stroke=series_color(index),
        stroke_width=2,
        stroke_dasharray=series_dash(index),
    )


def _axes(chart: TimelineChart) -> Iterator[Markup]:
    box = chart.box
    for tick in chart.ticks:
        y = chart.height(tick)
        yield rule(box.left, y, box.right, y, faint=tick > 0)
        yield words(box.left - 6, y + 4, size_label(tick), text_anchor="end", font_size=11)
    if chart.span.forward and chart.span.backward:
        yield rule(chart.border_x, box.top, chart.border_x, box.bottom, dash="3 3")


def _floor(chart: TimelineChart, floor_bytes: int) -> Iterator[Markup]:
    """What is live all the time."""
    if floor_bytes <= 0:
        return
    y = chart.height(floor_bytes)
    yield rule(chart.box.left, y, chart.box.right, y, dash="1 3")
    if chart.box.bottom - y >= 16:
        yield words(chart.box.left + 5, y + 13, "parameters and input", font_size=11)


def _step_line(line: Line) -> Markup:
    path = "".join(
        "M" + "L".join(f"{number(x)} {number(y)}" for x, y in stretch) for stretch in line.stretches
    )
    return _stroke(line.series, path)


def _dot(line: Line) -> Markup:
    return element(
        "circle",
        cx=line.mark.x,
        cy=line.mark.y,
        r=4,
        class_=f"area {series_class(line.series)}",
        fill=series_color(line.series),
    )


Rug = tuple[int, list[tuple[Slot, float]]]


def _rugs(chart: TimelineChart) -> list[Rug]:
    """For each curve that recomputes, its series and the share of ops that do so, by slot."""
    shares = [
        (
            line.series,
            [(s, s.columns[i].recomputed) for s in chart.slots if s.columns[i].recomputed],
        )
        for i, line in enumerate(chart.lines)
    ]
    return [(i, rug) for i, rug in shares if rug]


def _drawn_rugs(rugs: Sequence[Rug], box: Box) -> Iterator[Markup]:
    for row, (i, rug) in enumerate(rugs):
        y = box.bottom + RUG_GAP + RUG_ROW * row
        if row == 0:
            yield words(box.left - 6, y + 6, "recomputed", text_anchor="end", font_size=10)
        for slot, share in rug:
            yield element(
                "rect",
                x=slot.x,
                y=y,
                width=slot.width,
                height=5,
                fill_opacity=None if share == 1.0 else 0.3 + 0.7 * share,
                class_=f"area {series_class(i)}",
                fill=series_color(i),
            )


def _bottom(chart: TimelineChart, height: float) -> Iterator[Markup]:
    y, box, span = height - 26, chart.box, chart.span
    if span.forward:
        middle = (box.left + chart.border_x) / 2
        yield words(middle, y, f"forward, {units.count(span.forward, 'op')}", text_anchor="middle")
    if span.backward:
        middle = (chart.border_x + box.right) / 2
        yield words(middle, y, f"backward, {_backward_ops(chart)}", text_anchor="middle")
    yield words(
        (box.left + box.right) / 2,
        y + 18,
        "ops in the order in which they run; height: the most bytes live during each",
        text_anchor="middle",
        font_size=11,
    )


def _backward_ops(chart: TimelineChart) -> str:
    """`13 ops`, or `13 to 20 ops` where the strategies differ."""
    ends = [
        max(
            (
                s.columns[i].last + 1
                for s in chart.slots
                if s.part == "backward" and s.columns[i].point
            ),
            default=0,
        )
        for i in range(len(chart.lines))
    ]
    most, least = max(ends), min(ends)
    return units.count(most, "op", None if most == least else f"{least} to {most}")


def _slot(slot: Slot, chart: TimelineChart, nodes: Sequence[Nodes]) -> Markup:
    """The full height of a column, which tells what each strategy does there."""
    first, last = slot.columns[0].first + 1, slot.columns[0].last + 1
    numbers = f"op {first}" if first == last else f"ops {first} to {last}, the highest"
    lines = [f"{slot.part}, {numbers}"]
    for line, column, known in zip(chart.lines, slot.columns, nodes):
        lines.append(f"{line.name}: {_column_text(column, known)}")
    return element(
        "rect",
        element("title", below(lines)),
        x=slot.x,
        y=chart.box.top,
        width=slot.width,
        height=chart.box.bottom - chart.box.top,
        class_="slot",
        fill=INK,
        fill_opacity=0,
    )


def _column_text(column: Column, nodes: Nodes) -> str:
    point = column.point
    if point is None:
        return "done"
    node = None if point.node is None else nodes.get(point.node)
    value = "" if node is None else f", {list(node.shape)} {units.size(node.bytes)}"
    return f"{op_text(point)}{value}; {units.size(point.high_bytes)} live"
