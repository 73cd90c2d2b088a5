"""Linear maps of one axis each: averages over bins, interpolation.

A map is a matrix with a row for each output. Maps of several axes are applied one after the other,
and their adjoint is the transposed matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ckptcli.autodiff.windows import Window

Matrix = tuple[tuple[float, ...], ...]


def apply_maps(xp: Any, x: Any, maps: Sequence[Matrix], transposed: bool = False) -> Any:
    """X with each of its last axes mapped by one matrix."""
    rank = len(x.shape)
    for position, rows in enumerate(maps):
        axis = rank - len(maps) + position
        matrix = xp.array_like(rows, x)
        if not transposed:
            matrix = xp.matrix_transpose(matrix)
        swapped = xp.matmul(xp.swap_dims(x, axis, rank - 1), matrix)
        x = xp.swap_dims(swapped, axis, rank - 1)
    return x


@lru_cache(maxsize=256)
def window_means(length: int, window: Window, padding: int, with_padding: bool) -> Matrix:
    """The mean of each window over `length` elements with zeros around.

    `with_padding` counts the zeros as elements.
    """
    rows = []
    for index in range(window.count(length + 2 * padding)):
        first = index * window.stride - padding
        inside = [i for i in range(first, first + window.size) if 0 <= i < length]
        count = window.size if with_padding else max(1, len(inside))
        rows.append(_row(length, dict.fromkeys(inside, 1.0 / count)))
    return tuple(rows)


@lru_cache(maxsize=256)
def bin_means(length: int, outputs: int) -> Matrix:
    """The mean of each of `outputs` bins of nearly equal size, which may overlap by one."""
    rows = []
    for index in range(outputs):
        first = index * length // outputs
        last = math.ceil((index + 1) * length / outputs)
        rows.append(_row(length, dict.fromkeys(range(first, last), 1.0 / (last - first))))
    return tuple(rows)


@lru_cache(maxsize=256)
def nearest(length: int, outputs: int) -> Matrix:
    """The element at the scaled index, rounded down."""
    return tuple(_row(length, {index * length // outputs: 1.0}) for index in range(outputs))


@lru_cache(maxsize=256)
def linear(length: int, outputs: int, align_corners: bool) -> Matrix:
    """Between the two neighbours; with `align_corners` first and last elements stay."""
    rows = []
    for index in range(outputs):
        if align_corners:
            place = index * (length - 1) / (outputs - 1) if outputs > 1 else 0.0
        else:
            place = min(max((index + 0.5) * length / outputs - 0.5, 0.0), length - 1.0)
        low = min(int(place), length - 1)
        high = min(low + 1, length - 1)
        weights = {low: 1.0 - (place - low)}
        weights[high] = weights.get(high, 0.0) + (place - low)
        rows.append(_row(length, weights))
    return tuple(rows)


def _row(length: int, weights: dict[int, float]) -> tuple[float, ...]:
    row = [0.0] * length
    for index, weight in weights.items():
        row[index] = weight
    return tuple(row)
