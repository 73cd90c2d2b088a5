"""Whether a decomposition that came back differently differs in sizes, or in signs alone.

The signs of singular vectors are a choice: U and V with columns j times -1 decompose the same
matrix. A gradient that was formed with one choice and meets the other is wrong all the same, though
no number changed its size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ckptcli.measure.gauge import GaugeChange

SAME_DIRECTION = 0.99
"""Of a cosine between a column and what became of it."""


def gauge_change(
    original: Any, found: Any, op: str, node: int, layer: int | None, columns: int
) -> GaugeChange:
    """What became of a packed decomposition, (2n + 1, n)."""
    n = original.shape[1]
    before, after = original[:, :columns], found[:, :columns]
    cosines = np.array(
        [np.sum(before[r] * after[r], axis=0) for r in (slice(n), slice(n + 1, None))]
    )
    flipped = np.all(cosines < -SAME_DIRECTION, axis=0)
    turned = ~flipped & ~np.all(cosines > SAME_DIRECTION, axis=0)
    apart = np.abs(after * np.where(flipped, -1.0, 1.0) - before)[:, ~turned]
    sizes = np.abs(after[n] - before[n]) / max(float(before[n].max()), 1e-300)
    vectors = np.delete(apart, n, axis=0)
    return GaugeChange(
        op,
        node,
        layer,
        columns,
        tuple(np.flatnonzero(flipped).tolist()),
        tuple(np.flatnonzero(turned).tolist()),
        float(sizes.max()),
        float(vectors.max(initial=0.0)),
    )
