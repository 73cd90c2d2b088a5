"""Time against peak as SVG: a point a strategy, its time's interval a bar; both axes from zero."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli import units
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.report.charts import Box, Mark, Scale, byte_ticks, decimal_ticks, place_marks
from ckptcli.report.comparison import time_text
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.style import series_class, series_color
from ckptcli.report.drawing.timeline import CHARACTER, label, rule, size_label, trimmed, words

WIDTH, HEIGHT = 620, 330
BOX = Box(66, 12, WIDTH - 16, HEIGHT - 46)


def scatter_svg(record: RunRecord) -> Markup | None:
    """The picture, or None where nothing was timed."""
    timed = [
        (i, row)
        for i, row in enumerate(record.rows)
        if row.estimate("total") is not None and row.peak_bytes is not None
    ]
    if not timed:
        return None
    across = Scale(0.0, max(1e-9, *(_latest(s) * 1.1 for _, s in timed)), BOX.left, BOX.right)
    most = max(s.peak_bytes or 0 for _, s in timed)
    height = Scale(0.0, max(1.0, most * 1.2), BOX.bottom, BOX.top)
    places = [(across(s.median_s("total") or 0.0), height(s.peak_bytes or 0)) for _, s in timed]
    widths = [len(s.name) * CHARACTER for _, s in timed]
    marks = place_marks(places, widths, BOX)
    return element(
        "svg",
        *_axes(across, height),
        *_guides(record, across, height),
        *(_interval(i, s, mark.y, across) for (i, s), mark in zip(timed, marks)),
        *(label(i, mark, s.name) for (i, s), mark in zip(timed, marks)),
        *(_dot(i, s, mark) for (i, s), mark in zip(timed, marks)),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label="; ".join(_point_text(s) for _, s in timed),
        font_size=12,
    )


def _latest(record: Row) -> float:
    total = record.estimate("total")
    assert total is not None
    return total.median if total.high is None else total.high


def _point_text(record: Row) -> str:
    peak = units.size(record.peak_bytes)
    return f"{record.name}: {time_text(record, 'total')}, peak {peak}"


def _axes(across: Scale, height: Scale) -> Iterator[Markup]:
    for tick in byte_ticks(height.high):
        y = height(tick)
        yield rule(BOX.left, y, BOX.right, y, faint=tick > 0)
        yield words(BOX.left - 6, y + 4, size_label(tick), text_anchor="end", font_size=11)
    for time_s in decimal_ticks(across.high):
        x = across(time_s)
        yield rule(x, BOX.top, x, BOX.bottom, faint=time_s > 0)
        text = "0" if time_s == 0 else trimmed(units.duration(time_s * (1 + 1e-12)))
        yield words(x, BOX.bottom + 16, text, text_anchor="middle", font_size=11)
    middle = (BOX.left + BOX.right) / 2
    yield words(middle, HEIGHT - 8, "time of forward and backward", text_anchor="middle")
    yield words(BOX.left + 6, BOX.top + 12, "peak bytes")


def _guides(record: RunRecord, across: Scale, height: Scale) -> Iterator[Markup]:
    """Lines through the reference: left of it is faster, below it is smaller."""
    reference = record.reference
    total = None if reference is None else reference.estimate("total")
    if reference is None or total is None or reference.peak_bytes is None:
        return
    x, y = across(total.median), height(reference.peak_bytes)
    yield rule(x, BOX.top, x, BOX.bottom, dash="3 3")
    yield rule(BOX.left, y, BOX.right, y, dash="3 3")


def _interval(index: int, record: Row, y: float, across: Scale) -> Markup:
    """The interval of the time, if there is one."""
    total = record.estimate("total")
    assert total is not None
    if total.low is None or total.high is None:
        return Markup("")
    start, width = across(total.low), across(total.high) - across(total.low)
    return element(
        "rect",
        x=start,
        y=y - 1.5,
        width=width,
        height=3,
        class_=f"area {series_class(index)}",
        fill=series_color(index),
    )


def _dot(index: int, record: Row, mark: Mark) -> Markup:
    return element(
        "circle",
        element("title", _point_text(record)),
        cx=mark.x,
        cy=mark.y,
        r=6,
        class_=f"area {series_class(index)}",
        fill=series_color(index),
    )
