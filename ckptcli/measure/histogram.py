"""Histograms of several groups of samples on common bins, so that they can be laid side by side.

Invariant: every sample is in one bin. The bins end at the largest 95th percentile, what lies above
is in one last bin without an end: a single slow sample does not flatten the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ckptcli.measure.statistics import describe


@dataclass(frozen=True, slots=True)
class Histogram:
    """Bin i is from `edges[i]` to `edges[i + 1]`, the last has no end.

    `counts` has a list a group: as many numbers as there are edges.
    """

    edges: Sequence[float]
    counts: Mapping[str, Sequence[int]]


def histogram(groups: Mapping[str, Sequence[float]], bins: int = 20) -> Histogram:
    """The histogram of groups of at least one sample each, in `bins` bins of equal width."""
    low = min(min(samples) for samples in groups.values())
    high = max(describe(samples).p95 for samples in groups.values())
    width = (high - low) / bins or low * 1e-3 or 1e-9
    edges = [low + width * i for i in range(bins + 1)]
    return Histogram(edges, {name: _counts(s, low, width, bins) for name, s in groups.items()})


def _counts(samples: Sequence[float], low: float, width: float, bins: int) -> list[int]:
    counts = [0] * (bins + 1)
    for sample in samples:
        counts[_bin(sample, low, width, bins)] += 1
    return counts


def _bin(sample: float, low: float, width: float, bins: int) -> int:
    """The sample's bin; the end of the last bin with an end belongs to it."""
    position = (sample - low) / width
    return bins if position > bins * (1.0 + 1e-9) else min(bins - 1, math.floor(position))
