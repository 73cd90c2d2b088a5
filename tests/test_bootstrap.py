"""Resamples that are drawn many at once, against a loop over them."""

from __future__ import annotations

import math
import random
import statistics
import tracemalloc
from collections.abc import Sequence
from itertools import chain

from hypothesis import example, given, settings, strategies as st

from ckptcli.measure.bootstrap import RESAMPLES, SLAB, unpaired_ratio
from ckptcli.measure.statistics import FEWEST, LEVEL


def interval_by_a_loop(sides: Sequence[Sequence[Sequence[float]]], seed: int) -> list[float]:
    """The ends of the interval, a resample at a time, in Python alone."""
    draw = random.Random(seed)

    def median(groups: Sequence[Sequence[float]]) -> float:
        chosen = draw.choices(groups, k=len(groups)) if len(groups) > 1 else groups
        return statistics.median(
            chain.from_iterable(draw.choices(group, k=len(group)) for group in chosen)
        )

    logs = sorted(math.log(median(sides[0]) / median(sides[1])) for _ in range(RESAMPLES))
    outside = math.floor(len(logs) * (1.0 - LEVEL) / 2.0)
    return [math.exp(logs[outside]), math.exp(logs[-1 - outside])]


@settings(max_examples=15, deadline=None)
@given(
    shapes=st.lists(
        st.lists(st.integers(1, 7), min_size=1, max_size=4)
        | st.tuples(st.integers(1, 5), st.integers(1, 9)).map(lambda of: [of[1]] * of[0]),
        min_size=2,
        max_size=2,
    ).filter(lambda of: min(map(sum, of)) >= FEWEST),
    seed=st.integers(0, 2**64),
)
@example(shapes=[[6], [7]], seed=0)
@example(shapes=[[5] * 5, [4] * 2], seed=1)
@example(shapes=[[3, 4], [9]], seed=2)
def test_resamples_drawn_at_once_are_those_of_a_loop(shapes: list[list[int]], seed: int) -> None:
    draw = random.Random(seed)
    sides = [[[draw.lognormvariate(0, 1) for _ in range(n)] for n in side] for side in shapes]
    ratio = unpaired_ratio(sides[0], sides[1], seed=seed)
    assert [ratio.low, ratio.high] == interval_by_a_loop(sides, seed)


def test_many_samples_are_drawn_in_slabs_of_a_bounded_size() -> None:
    sides = [[[1.0 + i * j % 7 for i in range(2_000)] for j in range(1, 6)] for _ in range(2)]
    tracemalloc.start()
    try:
        unpaired_ratio(sides[0], sides[1], seed=0)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 * 8 * SLAB
