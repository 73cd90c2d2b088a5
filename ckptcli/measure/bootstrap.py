"""The ratio of times that were not taken in the same rounds: two saved runs.

Pairing is impossible, so that each side's median is resampled on its own. Samples of one process
share its memory layout and are not independent of each other: where there are several processes,
processes are drawn, then samples inside each that was drawn.

Invariant: the same samples and seed give the same figures.

Source: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993), 13.3 (percentile
interval); pyperf's documentation on processes. Why: `docs/statistics.md`.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from itertools import chain

from ckptcli.measure.statistics import FEWEST, LEVEL, Ratio, time_verdict

RESAMPLES = 2000


def unpaired_ratio(
    own: Sequence[Sequence[float]],
    base: Sequence[Sequence[float]],
    *,
    seed: int,
    threshold: float = 0.02,
    comparisons: int = 1,
) -> Ratio:
    """The ratio of two medians; each side is a list of positive samples a process.

    Under six samples on a side there is no interval: the range of the ratio, verdict `unclear`.
    `comparisons` is as in `paired_ratio`.
    """
    owns, bases = list(chain(*own)), list(chain(*base))
    median = statistics.median(owns) / statistics.median(bases)
    if min(len(owns), len(bases)) < FEWEST:
        return Ratio(median, min(owns) / max(bases), max(owns) / min(bases), False, "unclear")
    draw = random.Random(seed)
    logs = sorted(
        math.log(_resampled_median(own, draw) / _resampled_median(base, draw))
        for _ in range(RESAMPLES)
    )
    low, high = _percentile_interval(logs, LEVEL)
    strict = _percentile_interval(logs, 1.0 - (1.0 - LEVEL) / comparisons)
    return Ratio(median, math.exp(low), math.exp(high), True, time_verdict(strict, threshold))


def _resampled_median(groups: Sequence[Sequence[float]], draw: random.Random) -> float:
    chosen = draw.choices(groups, k=len(groups)) if len(groups) > 1 else groups
    return statistics.median(
        chain.from_iterable(draw.choices(group, k=len(group)) for group in chosen)
    )


def _percentile_interval(ordered: Sequence[float], level: float) -> tuple[float, float]:
    outside = math.floor(len(ordered) * (1.0 - level) / 2.0)
    return ordered[outside], ordered[-1 - outside]
