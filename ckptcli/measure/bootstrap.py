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
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ckptcli.measure.statistics import FEWEST, LEVEL, Ratio, time_verdict
from ckptcli.options.measuring import THRESHOLD

RESAMPLES = 2000

SLAB = 1 << 16
"""Random numbers that are drawn at once: half a megabyte, which a core's cache holds."""


def unpaired_ratio(
    own: Sequence[Sequence[float]],
    base: Sequence[Sequence[float]],
    *,
    seed: int,
    threshold: float = THRESHOLD,
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
    draw = _stream(seed)
    sides = [[np.asarray(group) for group in side] for side in (own, base)]
    logs = sorted(math.log(ratio) for ratio in _resampled_ratios(sides, draw))
    low, high = _percentile_interval(logs, LEVEL)
    strict = _percentile_interval(logs, 1.0 - (1.0 - LEVEL) / comparisons)
    return Ratio(median, math.exp(low), math.exp(high), True, time_verdict(strict, threshold))


def _stream(seed: int) -> np.random.RandomState:
    """Python's own stream of numbers, drawn many at once."""
    _, state, _ = random.Random(seed).getstate()
    stream = np.random.RandomState()
    stream.set_state(("MT19937", np.array(state[:-1], np.uint32), state[-1], 0, 0.0))
    return stream


def _resampled_ratios(
    sides: Sequence[Sequence[Any]], draw: np.random.RandomState
) -> Iterator[float]:
    """The ratio of the medians of each resample.

    How many numbers a resample takes depends on what it draws where processes have several counts
    of samples: only of equal ones several resamples are drawn at once, as the same numbers.
    """
    if any(len({len(group) for group in side}) > 1 for side in sides):
        for _ in range(RESAMPLES):
            yield _resampled_median(sides[0], draw) / _resampled_median(sides[1], draw)
        return
    own, base = (np.stack(list(side)) for side in sides)
    width = _numbers_taken(own)
    taken = width + _numbers_taken(base)
    at_once = max(1, SLAB // taken)
    for start in range(0, RESAMPLES, at_once):
        numbers = draw.random_sample((min(at_once, RESAMPLES - start), taken))
        yield from (_medians(own, numbers[:, :width]) / _medians(base, numbers[:, width:])).tolist()


def _numbers_taken(side: Any) -> int:
    """By one resample of a side of shape (processes, samples): one a process, one a sample."""
    return int(side.size) + (len(side) if len(side) > 1 else 0)


def _medians(side: Any, numbers: Any) -> Any:
    """Of each resample, a row of `numbers`, what `_resampled_median` is, float64."""
    processes, samples = side.shape
    own = processes if processes > 1 else 0
    chosen = (numbers[:, :own] * processes).astype(np.intp)
    inside = (numbers[:, own:] * samples).astype(np.intp)
    if own:
        inside += np.repeat(chosen * samples, samples, axis=1)
    values = side.reshape(-1)[inside]
    middle = values.shape[1] // 2
    values.partition((middle - 1, middle) if middle else 0, axis=1)
    upper = values[:, middle]
    return upper if values.shape[1] % 2 else (values[:, middle - 1] + upper) / 2


def _resampled_median(groups: Sequence[Any], draw: np.random.RandomState) -> float:
    chosen = _drawn(groups, draw) if len(groups) > 1 else groups
    parts = [group[_positions(len(group), draw)] for group in chosen]
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    middle = len(values) // 2
    values.partition((middle - 1, middle) if middle else 0)  # the order of the others is no matter
    upper = float(values[middle])
    return upper if len(values) % 2 else (float(values[middle - 1]) + upper) / 2


def _drawn(groups: Sequence[Any], draw: np.random.RandomState) -> list[Any]:
    return [groups[position] for position in _positions(len(groups), draw)]


def _positions(count: int, draw: np.random.RandomState) -> Any:
    """As many positions below `count`, with replacement, as `random.Random.choices` draws them."""
    return (draw.random_sample(count) * count).astype(np.intp)


def _percentile_interval(ordered: Sequence[float], level: float) -> tuple[float, float]:
    outside = math.floor(len(ordered) * (1.0 - level) / 2.0)
    return ordered[outside], ordered[-1 - outside]
