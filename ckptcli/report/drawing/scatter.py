"""Time against peak as SVG: a point a strategy, its time's interval a bar; both axes from zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli import units
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.report.charts import (
    DOT,
    LABEL_GAP,
    Box,
    Mark,
    Scale,
    byte_ticks,
    decimal_ticks,
    place_marks,
)
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.style import series_class, series_color
from ckptcli.report.drawing.timeline import label, rule, size_label, text_width, trimmed, words
from ckptcli.report.run_table import time_text

WIDTH, HEIGHT = 620, 330
BOX = Box(66, 12, WIDTH - 16, HEIGHT - 46)
STRIP = 30
"""Height of the strip below the axes for rows whose peak nobody knows."""

Timed = tuple[int, Row]
"""A row that was timed, and its place in the record."""


def scatter_svg(record: RunRecord) -> Markup | None:
    """The picture, or None where nothing was timed.

    A row whose peak is not known stands in a strip of its own below the axes, at its time.
    """
    timed = [(i, row) for i, row in enumerate(record.rows) if row.estimate("total") is not None]
    if not timed:
        return None
    across = Scale(0.0, max(1e-9, *(_latest(row) * 1.1 for _, row in timed)), BOX.left, BOX.right)
    most = max(row.peak_bytes or 0 for _, row in timed)
    height = Scale(0.0, max(1.0, most * 1.2), BOX.bottom, BOX.top)
    placed = [(i, row) for i, row in timed if row.peak_bytes is not None]
    unplaced = [(i, row) for i, row in timed if row.peak_bytes is None]
    strip = STRIP * len(unplaced)
    return element(
        "svg",
        *_axes(across, height, strip),
        *_guides(record.reference_of(timed[0][1]), across, height),
        *_dots(placed, _marks(placed, record, across, height), record, across),
        *_strip(unplaced, record, across),
        viewBox=f"0 0 {WIDTH} {HEIGHT + strip}",
        role="img",
        aria_label="; ".join(_point_text(row, record) for _, row in timed),
        font_size=12,
    )


def _marks(placed: Sequence[Timed], record: RunRecord, across: Scale, height: Scale) -> list[Mark]:
    places = [
        (across(row.median_s("total") or 0.0), height(row.peak_bytes or 0)) for _, row in placed
    ]
    return place_marks(places, [text_width(record.label(row)) for _, row in placed], BOX)


def _dots(
    rows: Sequence[Timed], marks: Sequence[Mark], record: RunRecord, across: Scale
) -> Iterator[Markup]:
    yield from (_interval(i, row, mark.y, across) for (i, row), mark in zip(rows, marks))
    yield from (label(i, mark, record.label(row)) for (i, row), mark in zip(rows, marks))
    yield from (_dot(i, row, record, mark) for (i, row), mark in zip(rows, marks))


def _strip(rows: Sequence[Timed], record: RunRecord, across: Scale) -> Iterator[Markup]:
    """A line of its own for each row without a peak, its name beside its dot."""
    for line, (i, row) in enumerate(rows):
        y = BOX.bottom + STRIP * (line + 0.5)
        x, width = across(row.median_s("total") or 0.0), text_width(record.label(row))
        is_right = x + DOT + LABEL_GAP + width < BOX.right
        start = x + DOT + LABEL_GAP if is_right else x - DOT - LABEL_GAP - width
        yield words(BOX.left - 6, y + 4, units.UNKNOWN, text_anchor="end", font_size=11)
        yield from _dots([(i, row)], [Mark(x, y, start, y + 4)], record, across)
    if rows:
        y = BOX.bottom + STRIP * len(rows)
        yield rule(BOX.left, y, BOX.right, y, faint=True)


def _latest(row: Row) -> float:
    total = row.estimate("total")
    assert total is not None
    return total.median if total.high is None else total.high


def _point_text(row: Row, record: RunRecord) -> str:
    peak = units.size(row.peak_bytes)
    return f"{record.label(row)}: {time_text(row, 'total')}, peak {peak}"


def _axes(across: Scale, height: Scale, strip: float) -> Iterator[Markup]:
    for tick in byte_ticks(height.high):
        y = height(tick)
        yield rule(BOX.left, y, BOX.right, y, faint=tick > 0)
        yield words(BOX.left - 6, y + 4, size_label(tick), text_anchor="end", font_size=11)
    for time_s in decimal_ticks(across.high):
        x = across(time_s)
        yield rule(x, BOX.top, x, BOX.bottom + strip, faint=time_s > 0)
        text = "0" if time_s == 0 else trimmed(units.duration(time_s * (1 + 1e-12)))
        yield words(x, BOX.bottom + strip + 16, text, text_anchor="middle", font_size=11)
    middle = (BOX.left + BOX.right) / 2
    yield words(middle, HEIGHT + strip - 8, "time of forward and backward", text_anchor="middle")
    yield words(BOX.right - 4, BOX.top + 12, "peak", text_anchor="end")


def _guides(reference: Row | None, across: Scale, height: Scale) -> Iterator[Markup]:
    """Lines through the reference: left of it is faster, below it is smaller."""
    total = None if reference is None else reference.estimate("total")
    if reference is None or total is None or reference.peak_bytes is None:
        return
    x, y = across(total.median), height(reference.peak_bytes)
    yield rule(x, BOX.top, x, BOX.bottom, dash="3 3")
    yield rule(BOX.left, y, BOX.right, y, dash="3 3")


def _interval(index: int, row: Row, y: float, across: Scale) -> Markup:
    """The interval of the time, if there is one."""
    total = row.estimate("total")
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


def _dot(index: int, row: Row, record: RunRecord, mark: Mark) -> Markup:
    return element(
        "circle",
        element("title", _point_text(row, record)),
        cx=mark.x,
        cy=mark.y,
        r=6,
        class_=f"area {series_class(index)}",
        fill=series_color(index),
    )
