"""Exact intervals of medians against whole-number oracles, paired ratios, the four verdicts.

`covered` is the definition: of all 2**n ways in which n samples fall below or above the median,
those in which the k-th smallest lies below it and the k-th largest above.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from fractions import Fraction

import pytest

from ckptcli.measure.statistics import (
    FEWEST,
    LEVEL,
    Ratio,
    estimate,
    fewest_samples,
    interval_rank,
    median_interval,
    paired_ratio,
)

LITTLE_WASTE = (9, 12, 15, 17, 20, 25, 30, 37, 44, 49)
"""Round counts whose interval lies just above 95 %."""


def covered(count: int, rank: int) -> Fraction:
    ways = sum(math.comb(count, below) for below in range(rank, count - rank + 1))
    return Fraction(ways, 2**count)


def best_rank(count: int, level: Fraction) -> int | None:
    ranks = [rank for rank in range(1, count // 2 + 1) if covered(count, rank) >= level]
    return max(ranks, default=None)


def ratio_of(*ratios: float, threshold: float = 0.02, comparisons: int = 1) -> Ratio:
    """The ratio from rounds in which the strategy took this many times the reference's time."""
    return paired_ratio(ratios, [1.0] * len(ratios), threshold=threshold, comparisons=comparisons)


def test_covered_is_what_counting_sides_gives() -> None:
    for count, rank in ((6, 1), (9, 2), (10, 3)):
        sides = itertools.product((0, 1), repeat=count)
        inside = sum(rank <= sum(below) <= count - rank for below in sides)
        assert covered(count, rank) == Fraction(inside, 2**count)


@pytest.mark.parametrize("level", ["0.5", "0.9", "0.95", "0.975", "0.99", "0.996", "0.9999"])
def test_ranks_are_the_largest_that_cover(level: str) -> None:
    expected = [best_rank(count, Fraction(level)) for count in range(1, 61)]
    assert [interval_rank(count, float(level)) for count in range(1, 61)] == expected


def test_six_samples_are_the_fewest() -> None:
    assert [interval_rank(count, LEVEL) for count in range(7)] == [None] * FEWEST + [1]


@pytest.mark.parametrize("count", LITTLE_WASTE)
def test_looks_waste_little(count: int) -> None:
    rank = interval_rank(count, LEVEL)
    assert rank is not None
    assert 0.95 <= covered(count, rank) < 0.966


@pytest.mark.parametrize("count", [7, 8, 11, 14, 22])
def test_other_counts_are_needlessly_wide(count: int) -> None:
    assert covered(count, interval_rank(count, LEVEL) or 0) > 0.98


def test_nine_rounds_reach_99_6_percent_and_so_twelve_comparisons() -> None:
    assert covered(9, 1) == 1 - Fraction(2, 2**9)
    assert interval_rank(9, 0.996) == 1
    assert interval_rank(9, 0.997) is None
    assert interval_rank(9, 1 - 0.05 / 12) == 1
    assert interval_rank(9, 1 - 0.05 / 13) is None


@pytest.mark.parametrize("count", [1023, 1024, 3000])
def test_many_rounds_have_a_rank(count: int) -> None:
    """Near the normal approximation, n / 2 - 1.96 * sqrt(n) / 2."""
    assert interval_rank(count, LEVEL) == pytest.approx(count / 2 - 0.98 * math.sqrt(count), abs=1)


def test_an_interval_is_made_of_samples_in_any_order() -> None:
    samples = [float(i) for i in range(1, 10)]
    random.Random(1).shuffle(samples)
    assert median_interval(samples) == (2.0, 8.0)
    assert median_interval(samples, 0.996) == (1.0, 9.0)
    assert median_interval(samples, 0.999) is None
    assert median_interval(samples[:5]) is None


@pytest.mark.parametrize("count", [6, 9, 17, 25])
def test_coverage_of_the_true_median(count: int) -> None:
    """As often as counting says, whatever the distribution: spiky times here."""
    random_ = random.Random(count)
    runs = 4000
    hits = 0
    for _ in range(runs):
        low, high = median_interval([spiky(random_) for _ in range(count)]) or (0.0, 0.0)
        hits += low <= 1.0 <= high
    expected = float(covered(count, interval_rank(count, LEVEL) or 0))
    deviation = math.sqrt(expected * (1.0 - expected) / runs)
    assert abs(hits / runs - expected) < 4 * deviation
    assert hits / runs > LEVEL - 4 * deviation


def spiky(random_: random.Random) -> float:
    """A time of median 1: the upper half is stretched, one in ten far out."""
    value = random_.lognormvariate(0.0, 0.02)
    return value if value < 1.0 else 1.0 + (value - 1.0) * random_.choice((1, 2, 50))


def test_the_estimate_of_one_sample() -> None:
    only = estimate([0.25])
    assert (only.median, only.least, only.most) == (0.25, 0.25, 0.25)
    assert (only.low, only.high, only.iqr_share) == (None, None, 0.0)


def test_the_estimate_of_many() -> None:
    samples = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 9.0]
    random.Random(2).shuffle(samples)
    found = estimate(samples)
    assert (found.median, found.low, found.high) == (1.4, 1.1, 1.7)
    assert (found.least, found.most) == (1.0, 9.0)
    assert found.iqr_share == pytest.approx((1.6 - 1.2) / 1.4)


def test_five_samples_have_an_estimate_without_interval() -> None:
    found = estimate([5.0, 1.0, 4.0, 2.0, 3.0])
    assert (found.median, found.low, found.high) == (3.0, None, None)
    assert found.iqr_share == pytest.approx(2.0 / 3.0)


def test_a_ratio_pairs_rounds_and_so_ignores_drift() -> None:
    drift = [1.0, 2.0, 4.0, 3.0, 7.0, 5.0, 6.0, 9.0, 8.0]
    reference = [0.1 * factor for factor in drift]
    own = [0.103 * factor for factor in drift]
    ratio = paired_ratio(own, reference)
    assert (ratio.low, ratio.median, ratio.high) == pytest.approx((1.03, 1.03, 1.03))
    assert (ratio.verdict, ratio.exact) == ("slower", True)
    shuffled = paired_ratio(own, reference[::-1])
    assert shuffled.verdict == "unclear"


def test_a_ratio_is_the_median_of_ratios_not_the_ratio_of_medians() -> None:
    own, reference = [1.0, 2.0, 8.0], [2.0, 1.0, 1.0]
    ratio = paired_ratio(own, reference)
    assert ratio.median == pytest.approx(statistics.median([0.5, 2.0, 8.0]))
    assert statistics.median(own) / statistics.median(reference) == ratio.median == 2.0


def test_a_ratio_and_its_inverse_agree() -> None:
    random_ = random.Random(3)
    own = [random_.lognormvariate(0.1, 0.05) for _ in range(25)]
    reference = [random_.lognormvariate(0.0, 0.05) for _ in range(25)]
    one, other = paired_ratio(own, reference), paired_ratio(reference, own)
    assert one.median == pytest.approx(1.0 / other.median)
    assert (one.low, one.high) == pytest.approx((1.0 / other.high, 1.0 / other.low))
    assert (one.verdict, other.verdict) == ("slower", "faster")


def test_a_half_width_is_a_share_of_the_ratio() -> None:
    """One in three of the rounds is 1 % off either way, whatever the ratio."""
    for scale in (0.1, 1.0, 3.0):
        ratio = ratio_of(*(scale * factor for factor in (0.99, 1.0, 1.01) for _ in range(3)))
        assert ratio.half_width == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([1.0] * 9, "same"),
        ([1.02] * 9, "same"),
        ([0.98] * 9, "same"),
        ([math.nextafter(1.02, 2)] * 9, "slower"),
        ([math.nextafter(0.98, 0)] * 9, "faster"),
        ([0.98] * 2 + [1.0] * 5 + [1.02] * 2, "same"),
        ([0.97] + [1.0] * 7 + [1.03], "same"),
        ([0.97] * 2 + [1.0] * 6 + [1.03], "unclear"),
        ([0.99] + [1.01] * 5 + [1.03] * 3, "slower"),
        ([1.001] * 2 + [1.01] * 5 + [1.03] * 2, "slower"),
        ([1.0] * 2 + [1.03] * 7, "unclear"),
        ([0.999] * 7 + [0.97] * 2, "faster"),
        ([1.0] * 2 + [0.97] * 7, "unclear"),
        ([0.9] * 2 + [1.1] * 7, "unclear"),
        ([1.5] * 8 + [0.5], "slower"),
        ([0.5] * 8 + [1.5], "faster"),
    ],
)
def test_verdicts_at_their_bounds(ratios: list[float], verdict: str) -> None:
    """Nine rounds: the interval is from the second smallest to the second largest."""
    assert ratio_of(*ratios).verdict == verdict


@pytest.mark.parametrize(
    ("threshold", "verdict"), [(0.0, "slower"), (0.03, "slower"), (0.05, "same")]
)
def test_the_threshold_says_what_counts_as_same(threshold: float, verdict: str) -> None:
    assert ratio_of(*[1.04] * 9, threshold=threshold).verdict == verdict
    assert ratio_of(*[1.0] * 9, threshold=threshold).verdict == "same"


def test_more_comparisons_need_a_wider_interval_for_the_verdict_alone() -> None:
    """One stray round of nine: outside the interval of one comparison, inside that of two."""
    rounds = [0.99] + [1.1] * 8
    found = [ratio_of(*rounds, comparisons=count) for count in (1, 2, 12, 13)]
    assert [ratio.verdict for ratio in found] == ["slower", "unclear", "unclear", "unclear"]
    assert {(ratio.low, ratio.high, ratio.exact) for ratio in found} == {
        (found[0].low, found[0].high, True)
    }


def test_nine_clean_rounds_suffice_for_twelve_comparisons_and_no_more() -> None:
    verdicts = [ratio_of(*[1.1] * 9, comparisons=count).verdict for count in (1, 12, 13)]
    assert verdicts == ["slower", "slower", "unclear"]
    assert ratio_of(*[1.1] * 12, comparisons=13).verdict == "slower"


@pytest.mark.parametrize("rounds", range(1, FEWEST))
def test_few_rounds_give_a_range_and_no_verdict(rounds: int) -> None:
    values = [1.5 + 0.1 * i for i in range(rounds)]
    ratio = ratio_of(*reversed(values))
    assert not ratio.exact
    assert (ratio.low, ratio.high) == pytest.approx((values[0], values[-1]))
    assert ratio.verdict == "unclear"


def test_six_rounds_give_a_verdict() -> None:
    assert ratio_of(*[1.5] * FEWEST).verdict == "slower"


@pytest.mark.parametrize("rounds", [25, 49])
def test_verdicts_hold_for_any_sequence(rounds: int) -> None:
    """The verdict is a function of the interval, by its definition."""
    random_ = random.Random(rounds)
    for _ in range(300):
        ratio = ratio_of(*noisy(random_, rounds, 1.0 + random_.uniform(-0.04, 0.04)))
        low, high = ratio.low, ratio.high
        if low >= 0.98 and high <= 1.02:
            expected = "same"
        elif low > 1.0 or high < 1.0:
            expected = "slower" if low > 1.0 else "faster"
        else:
            expected = "unclear"
        assert ratio.verdict == expected


def noisy(random_: random.Random, rounds: int, ratio: float) -> Sequence[float]:
    return [ratio * random_.lognormvariate(0.0, 0.03) for _ in range(rounds)]


@pytest.mark.parametrize("comparisons", [1, 2, 12, 13, 40, 198])
def test_so_many_samples_give_each_of_so_many_comparisons_a_verdict(comparisons: int) -> None:
    count = fewest_samples(comparisons)
    times = [1.0 + 0.001 * (i % 7) for i in range(count)]
    doubled = [2.0 * time_s for time_s in times]
    assert paired_ratio(doubled, times, comparisons=comparisons).verdict == "slower"
    fewer = paired_ratio(doubled[1:], times[1:], comparisons=comparisons)
    assert fewer.verdict == "unclear"
    assert (count <= 9) == (comparisons <= 12)
