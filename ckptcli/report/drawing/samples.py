"""Every counted round as a dot: a lane a row of the record, time to the right, rounds downwards.

A drift of the machine leans the dots, a slow round stands apart, and what the median and its
interval are made of is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli import units
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.report.charts import Box, Scale, decimal_ticks_between
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.style import PAPER, series_class, series_color
from ckptcli.report.drawing.timeline import rule, trimmed, words
from ckptcli.report.run_table import time_text

WIDTH = 800
LEFT, RIGHT, TOP = 12, 12, 4
LANE, HEAD, FOOT = 58, 18, 44
DOT_RADIUS = 2.6
TICKS = 8
_HALO: dict[str, str | float] = {"stroke_width": 4, "paint_order": "stroke"}
"""Names are read over lines."""

MOST_DOTS = 400
"""More rounds of a row than this are drawn in part: every second, third and so on."""


def samples_svg(record: RunRecord) -> Markup | None:
    """The picture, or None where nothing was timed."""
    timed = [(i, row) for i, row in enumerate(record.rows) if row.samples]
    if not timed:
        return None
    times_s = [sample.total_s for _, row in timed for sample in row.samples]
    low, high = min(times_s), max(times_s)
    room = 0.04 * (high - low) or 0.04 * high or 1e-9
    box = Box(LEFT, TOP, WIDTH - RIGHT, TOP + LANE * len(timed))
    across = Scale(max(0.0, low - room), high + room, box.left, box.right)
    return element(
        "svg",
        *_axis(across, box),
        *(
            part
            for lane, (i, row) in enumerate(timed)
            for part in _lane(i, row, record, across, box.top + LANE * lane)
        ),
        viewBox=f"0 0 {WIDTH} {box.bottom + FOOT}",
        role="img",
        aria_label="; ".join(_lane_text(row, record) for _, row in timed),
        font_size=12,
    )


def _axis(across: Scale, box: Box) -> Iterator[Markup]:
    for time_s in decimal_ticks_between(across.low, across.high, TICKS):
        x = across(time_s)
        yield rule(x, box.top, x, box.bottom, faint=True)
        text = "0" if time_s == 0 else trimmed(units.duration(time_s * (1 + 1e-12)))
        yield words(x, box.bottom + 16, text, text_anchor="middle", font_size=11)
    yield rule(box.left, box.bottom, box.right, box.bottom)
    middle = (box.left + box.right) / 2
    yield words(middle, box.bottom + 36, "forward and backward of a round", text_anchor="middle")


def _lane_text(row: Row, record: RunRecord) -> str:
    rounds = units.count(len(row.samples), "round")
    return f"{record.label(row)}: median {time_text(row, 'total')}, {rounds}"


def _lane(index: int, row: Row, record: RunRecord, across: Scale, top: float) -> Iterator[Markup]:
    """The name, the dots from the first round at the top, the median and its interval."""
    name = _lane_text(row, record)
    yield words(LEFT, top + 13, name, class_="ink halo", stroke=PAPER, **_HALO)
    down = Scale(0, max(1, len(row.samples) - 1), top + HEAD + 4, top + LANE - 8)
    yield from _median(index, row, across, top)
    for number, time_s in _shown([sample.total_s for sample in row.samples]):
        yield element(
            "circle",
            element("title", f"round {number + 1}: {units.duration(time_s)}"),
            cx=across(time_s),
            cy=down(number),
            r=DOT_RADIUS,
            class_=f"area {series_class(index)}",
            fill=series_color(index),
            fill_opacity=0.75,
        )


def _shown(times_s: Sequence[float]) -> list[tuple[int, float]]:
    numbered = list(enumerate(times_s))
    return numbered[:: max(1, -(-len(numbered) // MOST_DOTS))]


def _median(index: int, row: Row, across: Scale, top: float) -> Iterator[Markup]:
    total = row.estimate("total")
    if total is None:
        return
    start, height = top + HEAD, LANE - HEAD - 4
    if total.low is not None and total.high is not None:
        yield element(
            "rect",
            x=across(total.low),
            y=start,
            width=max(1.0, across(total.high) - across(total.low)),
            height=height,
            class_=f"area {series_class(index)}",
            fill=series_color(index),
            fill_opacity=0.18,
        )
    yield element(
        "rect",
        x=across(total.median) - 1,
        y=start,
        width=2,
        height=height,
        class_=f"area {series_class(index)}",
        fill=series_color(index),
    )
