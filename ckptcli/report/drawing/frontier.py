"""Predicted time against peak as SVG: plans on a line, named strategies as points with their names.

The axis of peaks begins at zero, that of times near the least: plans differ by little time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli import units
from ckptcli.planning.tape.frontier import Point
from ckptcli.report.charts import (
    Box,
    Scale,
    byte_ticks,
    decimal_ticks_between,
    place_marks,
)
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.style import series_class, series_color
from ckptcli.report.drawing.timeline import label, rule, size_label, text_width, trimmed, words

WIDTH, HEIGHT = 620, 330
BOX = Box(66, 12, WIDTH - 16, HEIGHT - 46)
PLANS, STRATEGIES = 0, 1
"""The colours of plans and of strategies."""


def frontier_svg(points: Sequence[Point]) -> Markup | None:
    """The picture; None where the program was not timed."""
    timed = [(point, point.time_s) for point in points if point.time_s]
    if not timed:
        return None
    least_s, most_s = min(t for _, t in timed), max(t for _, t in timed)
    room_s = 0.08 * (most_s - least_s) or 0.1 * most_s
    across = Scale(least_s - room_s, most_s + room_s, BOX.left, BOX.right)
    height = Scale(0.0, 1.1 * max(p.peak_bytes for p, _ in timed), BOX.bottom, BOX.top)
    places = [(point, across(time_s), height(point.peak_bytes)) for point, time_s in timed]
    plans = [place for place in places if not place[0].name]
    named = [place for place in places if place[0].name]
    return element(
        "svg",
        *_axes(across, height),
        _line(plans),
        *_dots(plans, PLANS, 3),
        *_names(named),
        *_dots(named, STRATEGIES, 5),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label="; ".join(_text(point) for point, _ in timed),
        font_size=12,
    )


Place = tuple[Point, float, float]
"""A point, and where it is drawn."""


def _axes(across: Scale, height: Scale) -> Iterator[Markup]:
    for tick in byte_ticks(height.high):
        y = height(tick)
        yield rule(BOX.left, y, BOX.right, y, faint=tick > 0)
        yield words(BOX.left - 6, y + 4, size_label(tick), text_anchor="end", font_size=11)
    for time_s in decimal_ticks_between(across.low, across.high):
        x = across(time_s)
        yield rule(x, BOX.top, x, BOX.bottom, faint=True)
        text = trimmed(units.duration(time_s * (1 + 1e-12)))
        yield words(x, BOX.bottom + 16, text, text_anchor="middle", font_size=11)
    middle = (BOX.left + BOX.right) / 2
    yield words(middle, HEIGHT - 8, "predicted time of a pass", text_anchor="middle")
    yield words(BOX.right - 4, BOX.top + 12, "peak", text_anchor="end")


def _line(plans: Sequence[Place]) -> Markup:
    """From plan to plan, largest peak first."""
    return element(
        "polyline",
        points=" ".join(f"{x:.2f},{y:.2f}" for _, x, y in plans),
        class_=f"line {series_class(PLANS)}",
        fill="none",
        stroke=series_color(PLANS),
        stroke_width=1.5,
    )


def _names(named: Sequence[Place]) -> Iterator[Markup]:
    """A name for all strategies at one place."""
    names: dict[tuple[float, float], list[str]] = {}
    for point, x, y in named:
        names.setdefault((x, y), []).append(point.name)
    texts = [", ".join(at) for at in names.values()]
    marks = place_marks(list(names), [text_width(text) for text in texts], BOX)
    yield from (label(STRATEGIES, mark, text) for mark, text in zip(marks, texts))


def _dots(places: Sequence[Place], series: int, radius: float) -> Iterator[Markup]:
    """Hollow where a plan needs less."""
    for point, x, y in places:
        yield element(
            "circle",
            element("title", _text(point)),
            cx=x,
            cy=y,
            r=radius,
            class_=f"{'line' if point.is_dominated else 'area'} {series_class(series)}",
            fill="none" if point.is_dominated else series_color(series),
            stroke=series_color(series),
        )


def _text(point: Point) -> str:
    beaten = ", dominated" if point.is_dominated else ""
    return (
        f"{point.name or 'plan'}: peak {units.size(point.peak_bytes)}, holds "
        f"{units.size(point.held_bytes)}, {units.duration(point.time_s)}{beaten}"
    )
