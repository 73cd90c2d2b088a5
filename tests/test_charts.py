"""The geometry of pictures: nothing is lost, nothing moves without a reason."""

from __future__ import annotations

import random

import pytest

from ckptcli.measure.trace import TimelinePoint
from ckptcli.report.charts import (
    LABEL_HEIGHT,
    Box,
    Curve,
    Span,
    byte_ticks,
    common_span,
    decimal_ticks,
    highest_point,
    place_marks,
    resample,
    timeline_chart,
)

BOX = Box(0.0, 0.0, 400.0, 200.0)


def point(phase: str, high_bytes: int) -> TimelinePoint:
    return TimelinePoint(phase, 0, "mul", high_bytes, high_bytes, 0.0, 1.0)


def pass_of(forward: int, backward: int, seed: int = 0) -> Curve:
    rng = random.Random(seed)
    return Curve(
        f"{forward}+{backward}",
        [point("forward", rng.randrange(1, 1000)) for _ in range(forward)],
        [point("backward", rng.randrange(1, 1000)) for _ in range(backward)],
    )


@pytest.mark.parametrize("columns", [2, 3, 7, 40, 1000])
@pytest.mark.parametrize(("forward", "backward"), [(1, 1), (5, 13), (0, 4), (4, 0), (100, 257)])
def test_no_op_and_no_peak_is_lost(forward: int, backward: int, columns: int) -> None:
    drawn = pass_of(forward, backward)
    sampled = resample(drawn, columns)
    assert len(sampled.points) <= columns
    for part, points in ((sampled.forward, drawn.forward), (sampled.backward, drawn.backward)):
        covered = [i for column in part for i in range(column.first, column.last + 1)]
        assert covered == list(range(len(points)))
        for column in part:
            assert column.point is not None
            stretch = points[column.first : column.last + 1]
            assert column.point.high_bytes == max(p.high_bytes for p in stretch)
    highest = highest_point([*drawn.forward, *drawn.backward])
    assert highest is not None
    assert sampled.highest is not None
    assert sampled.points[sampled.highest] == highest


def test_passes_of_one_picture_share_their_columns() -> None:
    short, long = pass_of(5, 6), pass_of(5, 9)
    span = common_span([short, long])
    assert span == Span(5, 9)
    first, second = resample(short, 100, span), resample(long, 100, span)
    assert [c.first for c in first.backward] == [c.first for c in second.backward]
    assert [c.point is None for c in first.backward] == [False] * 6 + [True] * 3


def test_the_share_of_recomputed_ops_is_known() -> None:
    points = [point("recompute", 5), point("backward", 9), point("backward", 1)]
    (column,) = resample(Curve("x", [], points), 1).backward
    assert column.recomputed == pytest.approx(1 / 3)


def test_lines_stay_in_the_box_and_break_only_where_a_pass_has_no_op() -> None:
    curves = [pass_of(5, 6), pass_of(8, 9)]
    chart = timeline_chart(curves, BOX, [50.0, 50.0])
    assert [len(line.stretches) for line in chart.lines] == [2, 1]
    for line in chart.lines:
        for x, y in (corner for stretch in line.stretches for corner in stretch):
            assert BOX.left - 1e-9 <= x <= BOX.right + 1e-9
            assert BOX.top <= y <= BOX.bottom
    assert chart.border_x == pytest.approx(400 * 8 / 17)


def test_names_do_not_cover_each_other() -> None:
    marks = place_marks([(200.0, 100.0)] * 6, [80.0] * 6, BOX)
    heights = sorted(mark.label_y for mark in marks)
    assert all(b - a >= LABEL_HEIGHT for a, b in zip(heights, heights[1:]))  # noqa: RUF007
    assert all(BOX.top <= mark.label_y <= BOX.bottom for mark in marks)


def test_names_do_not_cover_other_points() -> None:
    high, low = place_marks([(200.0, 100.0), (210.0, 110.0)], [80.0, 80.0], BOX)
    assert high.label_y < 100.0
    assert low.label_y > 110.0 + LABEL_HEIGHT or low.label_y < high.label_y


def test_too_many_names_stay_at_their_points() -> None:
    assert len(place_marks([(200.0, 100.0)] * 60, [80.0] * 60, BOX)) == 60


@pytest.mark.parametrize("most", [1.0, 3.0, 1000.0, 33.1 * 2**20, 2.0**50])
def test_ticks_are_few_and_reach_the_top(most: float) -> None:
    for ticks in (byte_ticks(most), decimal_ticks(most)):
        assert ticks[0] == 0
        assert 2 <= len(ticks) <= 8
        assert ticks[-1] <= most < ticks[-1] + 2 * (ticks[1] - ticks[0])
