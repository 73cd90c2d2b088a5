"""Special functions that NumPy lacks: sigmoid, relu, erf, gelu, and their derivatives.

sigmoid is e / (1 + e) with e = exp(min(x, cap)): accurate to a few units in the last place over
the whole range (float64 sigmoid(-40) = 4.248354255291589e-18), and no intermediate overflows,
so no floating-point warning has to be silenced. Its derivative behind the cap is exp(-x), which
reaches 0; whether an element lies there is one look at the largest.

erf uses W. J. Cody, "Rational Chebyshev approximation for the error function", Math. Comp. 23
(1969): one rational function near 0, one for the complement elsewhere.
"""

from __future__ import annotations

import math
from threading import Lock
from typing import Any

import numpy as np
from numpy import add, divide, exp, minimum, multiply
from numpy.typing import NDArray

from ckptcli.backends.composed import DENSITY_END
from ckptcli.backends.numpy_blocks import BLOCK_ELEMENTS, in_blocks

FloatArray = NDArray[Any]

_LARGEST_EXPONENT: dict[np.dtype[Any], float] = {
    np.dtype(np.float32): 88.0,
    np.dtype(np.float64): 709.0,
}
"""The largest whole number whose exponential is finite: the cap. sigmoid is 1 long before it."""

_CAP_AND_ONE: dict[np.dtype[Any], tuple[FloatArray, FloatArray]] = {
    dtype: (np.array(cap, dtype), np.array(1.0, dtype)) for dtype, cap in _LARGEST_EXPONENT.items()
}
"""Rank-0 arrays are half as expensive as Python floats as operands of a ufunc."""

_BEHIND_THE_CAP = Lock()
"""Held by the one lane that makes the arrays which are needed there."""

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
_TAIL_FROM = -1.0
"""Where erf(x / sqrt(2)) comes near enough to -1 that digits of 1 + erf would cancel."""
_TAIL_END = 30.0
"""Beyond it the complement is 0 in float64."""


def sigmoid(x: FloatArray, lanes: int = 1) -> FloatArray:
    """1 / (1 + exp(-x)), element by element."""
    cap, one = constants = _CAP_AND_ONE[x.dtype]
    if x.size > BLOCK_ELEMENTS:
        out, scratch = np.empty_like(x), (x.dtype,)
        return in_blocks(_sigmoid, out, x, constants=constants, scratch=scratch, lanes=lanes)
    return _sigmoid(None, x, cap, one)


def sigmoid_gradient(
    x: FloatArray, gradient: FloatArray, out: FloatArray | None = None, lanes: int = 1
) -> FloatArray:
    """`gradient` * sigmoid(x) * (1 - sigmoid(x)), computed again from x as Burn does.

    Where that slope is 0 behind the cap, an infinite gradient gives 0 too: the slope falls faster
    than anything that led to the gradient can have grown.
    """
    _, one = _CAP_AND_ONE[x.dtype]
    if x.size > BLOCK_ELEMENTS:
        out, scratch = np.empty_like(x) if out is None else out, (x.dtype, x.dtype)
        return in_blocks(
            _sigmoid_gradient, out, gradient, x, constants=(one,), scratch=scratch, lanes=lanes
        )
    return _sigmoid_gradient(out, gradient, x, one)


def relu(x: FloatArray) -> FloatArray:
    """max(x, 0), element by element; nan stays nan."""
    positive: FloatArray = np.maximum(x, 0.0)
    return positive


def relu_gradient(x: FloatArray, gradient: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """0 where x <= 0, else `gradient`: chosen, not multiplied, as 0 times infinity is nan."""
    flat = np.less_equal(x, 0.0)
    if out is None:
        return np.where(flat, gradient.dtype.type(0), gradient)
    np.copyto(out, gradient)
    np.copyto(out, 0.0, where=flat)
    return out


def erf(x: FloatArray) -> FloatArray:
    """The error function, to six units in the last place: three but for 0.46 < |x| < 0.6, where
    1 - erfc takes over.
    """
    return in_blocks(_erf_block, np.empty_like(x), x)


def gelu(x: FloatArray) -> FloatArray:
    """X * (1 + erf(x / sqrt(2))) / 2."""
    return in_blocks(_gelu_block, np.empty_like(x), x)


def gelu_gradient(x: FloatArray, gradient: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """`gradient` * (Phi(x) + x * phi(x)) with the normal distribution's Phi and density phi."""
    out = np.empty_like(x) if out is None else out
    return in_blocks(_gelu_gradient_block, out, gradient, x)


def _sigmoid(
    out: FloatArray | None,
    x: FloatArray,
    cap: FloatArray,
    one: FloatArray,
    t: FloatArray | None = None,
) -> FloatArray:
    e = minimum(x, cap) if out is None else minimum(x, cap, out=out)
    exp(e, e)
    return divide(e, add(e, one, t), e)


def _sigmoid_gradient(
    out: FloatArray | None,
    gradient: FloatArray,
    x: FloatArray,
    one: FloatArray,
    e: FloatArray | None = None,
    t: FloatArray | None = None,
) -> FloatArray:
    if x.size and not x.item(x.argmax()) <= _LARGEST_EXPONENT[x.dtype]:
        with _BEHIND_THE_CAP:
            return _sigmoid_gradient_behind_the_cap(out, gradient, x)
    e = exp(x, e)
    t = add(e, one, t)
    divide(e, t, e)
    divide(e, t, e)
    return multiply(gradient, e, out)


def _sigmoid_gradient_behind_the_cap(
    out: FloatArray | None, gradient: FloatArray, x: FloatArray
) -> FloatArray:
    """The same where an element is nan or larger than the cap."""
    cap, one = _CAP_AND_ONE[x.dtype]
    e = exp(minimum(x, cap))
    t = e + one
    slope = e / t / t
    behind = x > cap
    slope[behind] = exp(-x[behind])
    lost = behind & (slope == 0.0) & np.isinf(gradient)
    product: FloatArray = multiply(np.where(lost, gradient.dtype.type(0), gradient), slope, out)
    return product


def _horner(coefficients: tuple[float, ...], x: FloatArray) -> FloatArray:
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += coefficient
    return total


def _erf_block(out: FloatArray, x: FloatArray) -> FloatArray:
    y = np.absolute(x)
    near = np.minimum(y, _ERF_SPLIT)
    square = near * near
    small = near * _horner(_ERF_NUMERATOR, square) / _horner(_ERF_DENOMINATOR, square)
    far = np.clip(y, _ERF_SPLIT, 6.0)
    tail = np.exp(-far * far) * _horner(_ERFC_NUMERATOR, far) / _horner(_ERFC_DENOMINATOR, far)
    magnitude = np.where(y <= _ERF_SPLIT, small, 1.0 - tail)
    magnitude[np.isnan(x)] = np.nan
    return np.copysign(magnitude, x, out)


def _normal_share(x: FloatArray) -> FloatArray:
    """(1 + erf(x / sqrt(2))) / 2, whose lower tail is that of the complement: no digits cancel."""
    phi = _erf_block(np.empty_like(x), x * math.sqrt(0.5))
    phi += 1.0
    phi *= 0.5
    far = x < _TAIL_FROM
    if far.any():
        phi[far] = _lower_tail(x[far])
    return phi


def _lower_tail(x: FloatArray) -> FloatArray:
    """The same behind `_TAIL_FROM`: erfc(y) / 2 for y = -x / sqrt(2)."""
    y = np.minimum(x * -math.sqrt(0.5), _TAIL_END)
    near = np.minimum(y, _ERFC_SPLIT)
    tail = _horner(_ERFC_NUMERATOR, near) / _horner(_ERFC_DENOMINATOR, near)
    far = np.maximum(y, _ERFC_SPLIT)
    square = 1.0 / (far * far)
    series = square * _horner(_FAR_NUMERATOR, square) / _horner(_FAR_DENOMINATOR, square)
    tail = np.where(y <= _ERFC_SPLIT, tail, (1.0 / math.sqrt(math.pi) - series) / far)
    share: FloatArray = tail * np.exp(-y * y) * 0.5
    return share


def _gelu_block(out: FloatArray, x: FloatArray) -> FloatArray:
    return np.multiply(_normal_share(x), x, out)


def _gelu_gradient_block(out: FloatArray, gradient: FloatArray, x: FloatArray) -> FloatArray:
    phi = _normal_share(x)
    near = np.clip(x, -DENSITY_END, DENSITY_END)
    density = np.exp(-0.5 * near * near)
    density *= near
    density *= 1.0 / math.sqrt(2.0 * math.pi)
    phi += density
    return np.multiply(gradient, phi, out)


IN_BLOCKS = frozenset({sigmoid, sigmoid_gradient})
"""Those that are cut into blocks and take all their memory beforehand; they have `lanes`."""
