"""Exact intervals for medians, paired ratios, verdicts.

The interval of a median is the order-statistic (sign-test) interval: it needs no distribution, no
random numbers, and never falls under its level on independent rounds. A ratio is the median of the
per-round log ratios, since both strategies of a round share the machine's drift.

Source: H. A. David and H. N. Nagaraja, "Order Statistics" (2003), 7.1. Why this interval and not
the bootstrap's, and why these thresholds: `docs/statistics.md`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ckptcli.options.measuring import THRESHOLD

LEVEL = 0.95
FEWEST = 6
"""With fewer samples no interval of a median reaches 95 %."""

TimeVerdict = Literal["faster", "slower", "same", "unclear"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median with its exact 95 % interval; no interval (None) under six samples.

    Attributes:
        iqr_share: the interquartile range as a share of the median.
        low, high: the interval.
        least, most: the smallest and the largest sample.
    """

    median: float
    low: float | None
    high: float | None
    iqr_share: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """Time against the reference's, from the ratios of the rounds; above 1 is slower.

    The verdict uses a wider interval when several comparisons are made.

    Attributes:
        median: Median of the ratios, without unit.
        low: Lower end of its 95 % interval, or of the range if not `exact`.
        high: Upper end of its 95 % interval, or of the range if not `exact`.
        exact: Whether low and high are the exact 95 % interval; false under six rounds, where they
            are the range.
        verdict: The word on the ratio, at the record's threshold and corrected for the number of
            comparisons.
    """

    median: float
    low: float
    high: float
    exact: bool
    verdict: TimeVerdict

    @property
    def half_width(self) -> float:
        """Half the width of the interval, as a share of its middle."""
        return (self.high - self.low) / (self.high + self.low)


@dataclass(frozen=True, slots=True)
class Description:
    """What a page of statistics shows of some samples. `low` and `high` are as in `Estimate`.

    Attributes:
        deviation: the standard deviation of the samples; None for one sample.
        p5, p95: the 5th and the 95th percentile, interpolated.
    """

    count: int
    median: float
    low: float | None
    high: float | None
    iqr_share: float
    least: float
    most: float
    mean: float
    deviation: float | None
    p5: float
    p95: float


@cache
def interval_rank(count: int, level: float) -> int | None:
    """The largest k for which (k-th smallest, k-th largest) covers the median at `level`.

    None if no k does: `count` samples are too few. Counts in whole numbers: 2.0**1024 overflows.
    """
    rank = None
    outcomes = 2**count
    term, tail = 1, 0  # of the `outcomes`, how many have k - 1, and fewer than k, below the median
    for k in range(1, count // 2 + 1):
        tail += term
        if 1.0 - 2.0 * (tail / outcomes) < level:
            break
        rank = k
        term = term * (count - k + 1) // k
    return rank


def fewest_samples(comparisons: int) -> int:
    """How many samples there have to be for a verdict on one of so many comparisons."""
    count = 1
    while interval_rank(count, corrected_level(comparisons)) is None:
        count += 1
    return count


def corrected_level(comparisons: int) -> float:
    """The level at which each of so many verdicts is taken."""
    return 1.0 - (1.0 - LEVEL) / comparisons


def median_interval(samples: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """The order-statistic interval of the median; None under too few samples."""
    rank = interval_rank(len(samples), level)
    if rank is None:
        return None
    ordered = sorted(samples)
    return ordered[rank - 1], ordered[-rank]


def estimate(samples: Sequence[float]) -> Estimate:
    """Median, interval and spread of at least one sample."""
    median = statistics.median(samples)
    low, high = median_interval(samples) or (None, None)
    return Estimate(median, low, high, _iqr(samples) / median, min(samples), max(samples))


def describe(samples: Sequence[float]) -> Description:
    """The estimate of at least one sample, and what describes their spread."""
    shown = estimate(samples)
    several = len(samples) > 1
    parts = statistics.quantiles(samples, n=20, method="inclusive") if several else [samples[0]]
    return Description(
        count=len(samples),
        median=shown.median,
        low=shown.low,
        high=shown.high,
        iqr_share=shown.iqr_share,
        least=shown.least,
        most=shown.most,
        mean=statistics.fmean(samples),
        deviation=statistics.stdev(samples) if several else None,
        p5=parts[0],
        p95=parts[-1],
    )


def paired_ratio(
    own: Sequence[float],
    reference: Sequence[float],
    *,
    threshold: float = THRESHOLD,
    comparisons: int = 1,
) -> Ratio:
    """The ratio of two strategies that were timed in the same rounds, at least one.

    `comparisons` is how many verdicts the run gives: each is taken at 1 - 0.05 / comparisons, so
    that all together are wrong in at most one run in twenty.
    """
    logs = [math.log(a / b) for a, b in zip(own, reference)]
    shown = median_interval(logs)
    low, high = shown or (min(logs), max(logs))
    strict = median_interval(logs, corrected_level(comparisons))
    return Ratio(
        math.exp(statistics.median(logs)),
        math.exp(low),
        math.exp(high),
        shown is not None,
        "unclear" if strict is None else time_verdict(strict, threshold),
    )


def time_verdict(interval: tuple[float, float], threshold: float) -> TimeVerdict:
    """The word on an interval of a log ratio."""
    low, high = interval
    if math.log(1.0 - threshold) <= low and high <= math.log(1.0 + threshold):
        return "same"
    if low > 0.0:
        return "slower"
    return "faster" if high < 0.0 else "unclear"


def _iqr(samples: Sequence[float]) -> float:
    if len(samples) < 2:
        return 0.0
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return third - first
