"""Whether a decomposition that came back differently differs in sizes, or in signs alone.

The signs of singular vectors are a choice: U and V with columns j times -1 decompose the same
matrix. A gradient that was formed with one choice and meets the other is wrong all the same, though
no number changed its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SAME_DIRECTION = 0.99
"""Of a cosine between a column and what became of it."""


@dataclass(frozen=True, slots=True)
class GaugeChange:
    """How a packed decomposition (U, s, V) differs from the original, in the columns that count.

    Attributes:
        op, node, layer: whose value it is, and in which layer of the network it was made.
        columns: how many columns the program uses; no others are looked at.
        flipped: the columns that point the other way, in U and V both.
        turned: the columns that point elsewhere: rotated within nearly equal singular values.
        size_error: of the singular values, relative to the largest.
        vector_error: the largest change of an element of U or V, signs aside, `turned` left out.
    """

    op: str
    node: int
    layer: int | None
    columns: int
    flipped: tuple[int, ...]
    turned: tuple[int, ...]
    size_error: float
    vector_error: float

    def __str__(self) -> str:
        parts = []
        if self.flipped:
            parts.append(f"the signs of {_columns(self.flipped)}")
        if self.turned:
            parts.append(f"the directions of {_columns(self.turned)}")
        sizes = f"singular values within {self.size_error:.1e}, vectors within"
        if not parts:
            return f"sizes alone: {sizes} {self.vector_error:.1e}"
        return (
            f"{' and '.join(parts)}: a gauge, not an error of size ({sizes} "
            f"{self.vector_error:.1e} but for that)"
        )


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


def _columns(numbers: tuple[int, ...]) -> str:
    """`column 5`, or `columns 5, 6`."""
    return f"column{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
