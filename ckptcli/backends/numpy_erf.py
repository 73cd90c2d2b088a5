"""erf, gelu and gelu's derivative, which NumPy lacks.

erf uses W. J. Cody, "Rational Chebyshev approximation for the error function", Math. Comp. 23
(1969): one rational function near 0, one for the complement elsewhere. Both are computed for every
element and one is chosen by its bits: choosing by a mask takes NumPy as long as twenty steps of
arithmetic, since it branches at each element.

Invariant: each element goes through the same roundings, whatever stands beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy import (
    absolute,
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    exp,
    multiply,
    negative,
    right_shift,
    subtract,
)
from numpy.typing import NDArray

from ckptcli.backends.composed import DENSITY_END
from ckptcli.backends.numpy_blocks import BlockKernel, in_blocks

FloatArray = NDArray[Any]
IntArray = NDArray[Any]

_ERF_SPLIT = 0.46875
_ERF_NUMERATOR = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_ERF_DENOMINATOR = (
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
)
_ERFC_NUMERATOR = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_ERFC_DENOMINATOR = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)

_FAR_NUMERATOR = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_FAR_DENOMINATOR = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_ERFC_SPLIT = 4.0
_ERF_END = 6.0
"""Beyond it erf is 1 in float64."""
_TAIL_END = 30.0
"""Beyond it the complement is 0 in float64."""

_ROWS = 6
"""y, |erf|, the tail, exp(-y * y), and numerator and denominator."""


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What the steps need for a dtype and rank: pairs of coefficients, rank-0 arrays, integers."""

    near: tuple[FloatArray, ...]
    far: tuple[FloatArray, ...]
    split: FloatArray
    end: FloatArray
    one: FloatArray
    half: FloatArray
    root_half: FloatArray
    density_peak: FloatArray
    integer: np.dtype[Any]
    sign_place: IntArray
    sign: IntArray


@cache
def _numbers_of(dtype: np.dtype[Any], ndim: int) -> _Numbers:
    integer = np.dtype(f"i{dtype.itemsize}")
    return _Numbers(
        near=_columns(_ERF_NUMERATOR, _ERF_DENOMINATOR, dtype, ndim),
        far=_columns(_ERFC_NUMERATOR, _ERFC_DENOMINATOR, dtype, ndim),
        split=np.array(_ERF_SPLIT, dtype),
        end=np.array(_ERF_END, dtype),
        one=np.array(1.0, dtype),
        half=np.array(0.5, dtype),
        root_half=np.array(math.sqrt(0.5), dtype),
        density_peak=np.array(1.0 / math.sqrt(2.0 * math.pi), dtype),
        integer=integer,
        sign_place=np.array(8 * dtype.itemsize - 1, integer),
        sign=np.array(np.iinfo(integer).min, integer),
    )


def _columns(
    numerator: tuple[float, ...],
    denominator: tuple[float, ...],
    dtype: np.dtype[Any],
    ndim: int,
) -> tuple[FloatArray, ...]:
    """For each power the coefficients of two polynomials, for arrays of so many axes."""
    pairs = zip(numerator, denominator, strict=True)
    shape = (2, *(1,) * ndim)
    return tuple(np.array(pair, dtype).reshape(shape) for pair in pairs)


def erf(x: FloatArray) -> FloatArray:
    """The error function, to six units in the last place: three but for 0.46 < |x| < 0.6, where
    1 - erfc takes over.
    """
    return in_blocks(_ERF, (np.empty_like(x), x))


def gelu(x: FloatArray) -> FloatArray:
    """X * (1 + erf(x / sqrt(2))) / 2."""
    return in_blocks(_GELU, (np.empty_like(x), x))


def gelu_gradient(x: FloatArray, gradient: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """`gradient` * (Phi(x) + x * phi(x)) with the normal distribution's Phi and density phi."""
    out = np.empty_like(x) if out is None else out
    return in_blocks(_GELU_GRADIENT, (out, gradient, x))


def _erf_block(out: FloatArray, x: FloatArray, room: FloatArray) -> None:
    numbers, (y, magnitude, *_) = _numbers_of(x.dtype, x.ndim), room
    absolute(x, y)
    top = _rationals(numbers, room)
    _magnitude(numbers, room)
    _signed(numbers, x, magnitude, y, out)
    if top != top:
        _keep_nan(x, out)


def _gelu_block(out: FloatArray, x: FloatArray, room: FloatArray) -> None:
    phi, _ = _normal_share(x, room)
    multiply(phi, x, out)


def _gelu_gradient_block(
    out: FloatArray, gradient: FloatArray, x: FloatArray, room: FloatArray
) -> None:
    phi, is_near = _normal_share(x, room)
    if 0 in x.strides:
        near = np.clip(x, -DENSITY_END, DENSITY_END)
        _add_slope(x, near, np.empty_like(near), phi)
    else:
        near = x if is_near else np.clip(x, -DENSITY_END, DENSITY_END, out=room[0])
        _add_slope(x, near, room[3], phi)
    multiply(gradient, phi, out)


def _add_slope(x: FloatArray, near: FloatArray, density: FloatArray, phi: FloatArray) -> None:
    """Add x * phi(x) by steps in `density`, whose layout decides which of two nan is kept."""
    multiply(near, -0.5, density)
    multiply(density, near, density)
    exp(density, density)
    multiply(density, near, density)
    multiply(density, _numbers_of(x.dtype, x.ndim).density_peak, density)
    add(phi, density, phi)


_ERF = BlockKernel(_erf_block, _ROWS)
_GELU = BlockKernel(_gelu_block, _ROWS)
_GELU_GRADIENT = BlockKernel(_gelu_gradient_block, _ROWS)


def _normal_share(x: FloatArray, room: FloatArray) -> tuple[FloatArray, bool]:
    """(1 + erf(x / sqrt(2))) / 2 in a row of `room`, and whether all |x| < 9.

    Its lower tail is that of the complement, so that no digits cancel: from -1 on downwards.
    """
    numbers, (y, phi, tail, decay, numerator, denominator) = _numbers_of(x.dtype, x.ndim), room
    multiply(x, numbers.root_half, y)
    absolute(y, y)
    top = _rationals(numbers, room)
    divide(numerator, denominator, tail)
    multiply(tail, decay, tail)
    multiply(tail, numbers.half, tail)
    _magnitude(numbers, room)
    _signed(numbers, x, phi, y, phi)
    add(phi, numbers.one, phi)
    multiply(phi, numbers.half, phi)
    add(x, numbers.one, y)
    _choose(numbers, phi, tail, y)
    if not top <= _ERFC_SPLIT:
        _share_far_out(x, phi)
    if top != top:
        _keep_nan(x, phi)
    return phi, top <= _ERF_END


def _rationals(numbers: _Numbers, room: FloatArray) -> float:
    """Both rational functions of y, which is |x| in the first row; returns the largest y.

    erf near 0 goes to the second row, exp(-y * y) to the fourth, the complement's numerator and
    denominator to the last two. Where one of them does not hold it is finite and not chosen.
    """
    y, near, square, decay, numerator, denominator = room
    in_memory = y.ravel("K")
    top: float = in_memory.item(in_memory.argmax())
    if not top <= _ERF_END:
        np.minimum(y, numbers.end, out=y)
    pair = room[4:]
    multiply(y, y, square)
    _horner(numbers.near, square, pair)
    multiply(y, numerator, near)
    divide(near, denominator, near)
    _horner(numbers.far, y, pair)
    negative(square, decay)
    exp(decay, decay)
    return top


def _horner(columns: tuple[FloatArray, ...], x: FloatArray, pair: FloatArray) -> None:
    """Two polynomials at once: half as many calls."""
    multiply(x, columns[0], pair)
    add(pair, columns[1], pair)
    for column in columns[2:]:
        multiply(pair, x, pair)
        add(pair, column, pair)


def _magnitude(numbers: _Numbers, room: FloatArray) -> None:
    """|erf| to the second row, from what `_rationals` gave; the first and fourth are lost."""
    y, magnitude, _, decay, numerator, denominator = room
    multiply(decay, numerator, decay)
    divide(decay, denominator, decay)
    subtract(numbers.one, decay, decay)
    subtract(numbers.split, y, y)
    _choose(numbers, magnitude, decay, y)


def _choose(numbers: _Numbers, values: FloatArray, others: FloatArray, where: FloatArray) -> None:
    """`others` into `values` where the sign bit of `where` is set; both of them are lost."""
    bits, changes = values.view(numbers.integer), others.view(numbers.integer)
    mask = where.view(numbers.integer)
    right_shift(mask, numbers.sign_place, mask)
    bitwise_xor(changes, bits, changes)
    bitwise_and(changes, mask, changes)
    bitwise_xor(bits, changes, bits)


def _signed(
    numbers: _Numbers, x: FloatArray, magnitude: FloatArray, spare: FloatArray, out: FloatArray
) -> None:
    """`magnitude` with the sign of x: `copysign` takes NumPy five times as long."""
    sign = spare.view(numbers.integer)
    bitwise_and(x.view(numbers.integer), numbers.sign, sign)
    bitwise_or(magnitude.view(numbers.integer), sign, out.view(numbers.integer))


def _keep_nan(x: FloatArray, result: FloatArray) -> None:
    """Where x is nan, nan with its sign."""
    is_nan = np.isnan(x)
    result[is_nan] = np.copysign(x.dtype.type(np.nan), x[is_nan])


def _share_far_out(x: FloatArray, phi: FloatArray) -> None:
    """The complement's series, where x is below -4 * sqrt(2)."""
    far = x * -math.sqrt(0.5) > _ERFC_SPLIT
    if far.any():
        phi[far] = _lower_tail(x[far])


def _lower_tail(x: FloatArray) -> FloatArray:
    """erfc(y) / 2 for y = -x / sqrt(2) of more than 4."""
    y = np.minimum(x * -math.sqrt(0.5), _TAIL_END)
    square = 1.0 / (y * y)
    numerator, denominator = pair = np.empty((2, y.size), x.dtype)
    _horner(_columns(_FAR_NUMERATOR, _FAR_DENOMINATOR, x.dtype, 1), square, pair)
    series = square * numerator / denominator
    tail = (1.0 / math.sqrt(math.pi) - series) / y
    share: FloatArray = tail * exp(-y * y) * 0.5
    return share
