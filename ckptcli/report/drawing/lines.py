"""Panels of lines as SVG: both axes logarithmic, a line a strategy, its name at its right end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ckptcli.report.charts import Box, Scale
from ckptcli.report.drawing.markup import Markup, element, number
from ckptcli.report.drawing.style import (
    PAPER,
    picture_style,
    series_class,
    series_color,
    series_dash,
)
from ckptcli.report.drawing.timeline import rule, text_width, trimmed, words
from ckptcli.report.sweep_chart import Line, Panel, size_text

WIDTH, HEIGHT = 620, 330
LABEL_HEIGHT = 14.0
MOST_OF_NAMES = 280
"""Of the width; a longer name is cut by the edge, and whole at each of its points."""

LEFT, TOP, BOTTOM, MARGIN = 74, 30, 46, 16


def panels_svg(panels: Sequence[Panel]) -> Markup:
    """A file with the panels below each other."""
    pictures = (
        element("g", *_parts(panel), transform=f"translate(0 {number(i * HEIGHT)})")
        for i, panel in enumerate(panels)
    )
    height = HEIGHT * len(panels)
    return element(
        "svg",
        element("style", Markup(picture_style())),
        element("rect", width=WIDTH, height=height, class_="paper", fill=PAPER),
        *pictures,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
        font_size=12,
    )


def panel_svg(panel: Panel) -> Markup:
    """One panel, for a page."""
    return element(
        "svg",
        *_parts(panel),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=panel.title,
        font_size=12,
    )


def _parts(panel: Panel) -> Iterator[Markup]:
    names = max(text_width(line.name) for line in panel.lines)
    box = Box(LEFT, TOP, WIDTH - MARGIN - min(names, MOST_OF_NAMES) - 8, HEIGHT - BOTTOM)
    low, high, least, most = panel.ends
    across = _Logarithm(low, high, box.left + 8, box.right - 8)
    height = _Logarithm(least, most, box.bottom - 8, box.top + 8)
    yield words(box.left, 18, panel.title, class_="ink")
    yield from _axes(panel, box, across, height)
    ends = [height(line.points[-1][1]) for line in panel.lines]
    for line, y in zip(panel.lines, _apart(ends)):
        yield from _line(panel, line, across, height)
        yield element(
            "text",
            line.name,
            x=box.right + 6,
            y=y + 4,
            class_=f"area {series_class(line.series)}",
            fill=series_color(line.series),
        )


class _Logarithm:
    """Values to positions; the middle where all are one."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        apart = 1.0 if low == high else 0.0
        self._scale = Scale(math.log(low) - apart, math.log(high) + apart, start, end)

    def __call__(self, value: float) -> float:
        return self._scale(math.log(value))


def _axes(panel: Panel, box: Box, across: _Logarithm, height: _Logarithm) -> Iterator[Markup]:
    for figure in panel.figures:
        y = height(figure)
        yield rule(box.left, y, box.right, y, faint=True)
        text = trimmed(panel.text(figure * (1 + 1e-12)))
        yield words(box.left - 6, y + 4, text, text_anchor="end", font_size=11)
    for size in panel.sizes:
        x = across(size)
        yield rule(x, box.top, x, box.bottom, faint=True)
        yield words(x, box.bottom + 16, size_text(size), text_anchor="middle", font_size=11)
    yield rule(box.left, box.bottom, box.right, box.bottom)
    middle = (box.left + box.right) / 2
    yield words(middle, HEIGHT - 10, panel.across, text_anchor="middle")


def _line(panel: Panel, line: Line, across: _Logarithm, height: _Logarithm) -> Iterator[Markup]:
    places = [(across(x), height(y)) for x, y in line.points]
    yield element(
        "polyline",
        points=" ".join(f"{number(x)},{number(y)}" for x, y in places),
        fill="none",
        stroke=series_color(line.series),
        stroke_width=1.8,
        stroke_dasharray=series_dash(line.series),
        class_=f"line {series_class(line.series)}",
    )
    for (x, y), (size, figure) in zip(places, line.points):
        said = f"{line.name}, {panel.across} = {size_text(size)}: {panel.text(figure)}"
        yield element(
            "circle",
            element("title", said),
            cx=x,
            cy=y,
            r=3.5,
            class_=f"area {series_class(line.series)}",
            fill=series_color(line.series),
        )


def _apart(wanted: Sequence[float]) -> list[float]:
    """Heights as near to those wanted as lets each have a line for itself."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    found = list(wanted)
    for before, after in pairwise(order):
        found[after] = max(found[after], found[before] + LABEL_HEIGHT)
    over = max([0.0, *(found[i] - (HEIGHT - BOTTOM) for i in order)])
    return [y - over for y in found]
