"""Linear maps of one axis each: averages over bins, interpolation.

A map is a matrix with a row for each output. Maps of several axes are applied one after the other,
and their adjoint is the transposed matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ckptcli.autodiff.op import KEEPS_INPUT, Op
from ckptcli.autodiff.windows import Window
from ckptcli.graph import Bound

Matrix = tuple[tuple[float, ...], ...]


def apply_maps(xp: Any, x: Any, maps: Sequence[Matrix], transposed: bool = False) -> Any:
    """x with each of its last axes mapped by one matrix."""
    rank = len(x.shape)
    for position, rows in enumerate(maps):
        axis = rank - len(maps) + position
        matrix = xp.array_like(rows, x)
        if not transposed:
            matrix = xp.matrix_transpose(matrix)
        swapped = xp.matmul(xp.swap_dims(x, axis, rank - 1), matrix)
        x = xp.swap_dims(swapped, axis, rank - 1)
    return x


def _gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """Linear, so the input that Burn keeps is not looked at."""
    return apply_maps(xp, grad, step.params, transposed=True)


def axis_maps_op(name: str) -> Op:
    """An op whose static arguments are the maps of its last axes."""
    return Op(
        name,
        Bound.COMPUTE,
        1,
        forward=lambda xp, x, maps: apply_maps(xp, x, maps),
        backward=_gradient,
        keeps=KEEPS_INPUT,
        flops=lambda operands, output: 2 * math.prod(operands[0]),
    )


@lru_cache(maxsize=256)
def window_means(
    length: int, window: Window, padding: int, with_padding: bool, ceil_mode: bool
) -> Matrix:
    """The mean of each window over `length` elements with zeros around.

    `with_padding` counts the zeros as elements, but nothing beyond them, which a window may reach
    in `ceil_mode`.
    """
    rows = []
    padded = length + 2 * padding
    missing = window.missing(padded) if ceil_mode else 0
    for index in range(window.count(padded + missing)):
        first = index * window.stride - padding
        inside = [i for i in range(first, first + window.size) if 0 <= i < length]
        within = min(first + window.size, length + padding) - first
        count = max(1, within if with_padding else len(inside))
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
        place = min(max(_place(index, length, outputs, align_corners), 0.0), length - 1.0)
        low = min(int(place), length - 1)
        high = min(low + 1, length - 1)
        weights = {low: 1.0 - (place - low)}
        weights[high] = weights.get(high, 0.0) + (place - low)
        rows.append(_row(length, weights))
    return tuple(rows)


@lru_cache(maxsize=256)
def cubic(length: int, outputs: int, align_corners: bool) -> Matrix:
    """A cubic convolution of the four neighbours; the elements at the ends are repeated."""
    rows = []
    for index in range(outputs):
        place = _place(index, length, outputs, align_corners)
        low = math.floor(place)
        weights: dict[int, float] = {}
        for neighbour in range(low - 1, low + 3):
            inside = min(max(neighbour, 0), length - 1)
            weights[inside] = weights.get(inside, 0.0) + _keys(abs(place - neighbour))
        rows.append(_row(length, weights))
    return tuple(rows)


def _place(index: int, length: int, outputs: int, align_corners: bool) -> float:
    """Where among `length` elements an output lies."""
    if align_corners:
        return index * (length - 1) / (outputs - 1) if outputs > 1 else 0.0
    return (index + 0.5) * length / outputs - 0.5


SHARPNESS = -0.75
"""The slope of the cubic kernel at distance 1, as in Burn."""


def _keys(distance: float) -> float:
    """Keys' cubic convolution kernel, for a distance of 2 at most."""
    if distance < 1.0:
        return ((SHARPNESS + 2.0) * distance - (SHARPNESS + 3.0)) * distance * distance + 1.0
    return SHARPNESS * (((distance - 5.0) * distance + 8.0) * distance - 4.0)


def _row(length: int, weights: dict[int, float]) -> tuple[float, ...]:
    row = [0.0] * length
    for index, weight in weights.items():
        row[index] = weight
    return tuple(row)
