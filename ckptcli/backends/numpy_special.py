"""Special functions that NumPy lacks: sigmoid, relu, and their derivatives.

sigmoid is e / (1 + e) with e = exp(min(x, cap)): accurate to a few units in the last place over
the whole range (float64 sigmoid(-40) = 4.248354255291589e-18), and no intermediate overflows,
so no floating-point warning has to be silenced. Its derivative behind the cap is exp(-x), which
reaches 0; whether an element lies there is one look at the largest, which of a contiguous block
takes a quarter of the time of the minimum.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy import add, bitwise_and, divide, exp, less_equal, minimum, multiply, subtract
from numpy.typing import NDArray

from ckptcli.backends.numpy_blocks import BLOCK_ELEMENTS, BlockKernel, are_flat, in_blocks

FloatArray = NDArray[Any]

_LIMITS: dict[np.dtype[Any], tuple[float, FloatArray, FloatArray]] = {
    np.dtype(name): (cap, np.array(cap, name), np.array(1.0, name))
    for name, cap in (("float32", 88.0), ("float64", 709.0))
}
"""The cap, once more as an array, and 1. The cap is the largest whole number whose exponential is
finite; sigmoid is 1 long before it. Rank-0 arrays are half as expensive as Python floats as
operands of a ufunc."""

_BEHIND_THE_CAP = Lock()
"""Held by the one lane that makes the arrays which are needed there."""

_INTEGER: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.int32),
    np.dtype(np.float64): np.dtype(np.int64),
}
"""Of the same size."""

_FEW_ELEMENTS = 8192
_CHOOSING_LEAST, _CHOOSING_MOST = 2048, 16384
"""Elements of a block: with fewer, choosing by bits takes as long as by a mask. Their room is no
more than a mask of the whole array is, a byte an element."""


def sigmoid(x: FloatArray, lanes: int = 1) -> FloatArray:
    """1 / (1 + exp(-x)), element by element."""
    if x.size > BLOCK_ELEMENTS:
        return in_blocks(_SIGMOID, (np.empty_like(x), x), lanes)
    _, cap, one = _LIMITS[x.dtype]
    e = minimum(x, cap)
    exp(e, e)
    return divide(e, add(e, one), e)


def sigmoid_gradient(
    x: FloatArray, gradient: FloatArray, out: FloatArray | None = None, lanes: int = 1
) -> FloatArray:
    """`gradient` * sigmoid(x) * (1 - sigmoid(x)), computed again from x as Burn does.

    Where that slope is 0 behind the cap, an infinite gradient gives 0 too: the slope falls faster
    than anything that led to the gradient can have grown.
    """
    if x.size > BLOCK_ELEMENTS:
        out = np.empty_like(x) if out is None else out
        return in_blocks(_SIGMOID_GRADIENT, (out, gradient, x), lanes)
    return _sigmoid_gradient(out, gradient, x)


def relu(x: FloatArray) -> FloatArray:
    """max(x, 0), element by element; nan stays nan."""
    positive: FloatArray = np.maximum(x, 0.0)
    return positive


def relu_gradient(x: FloatArray, gradient: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """0 where x <= 0, else `gradient`: chosen, not multiplied, as 0 times infinity is nan."""
    if x.size < _FEW_ELEMENTS:
        return _relu_gradient_by_mask(x, gradient, out)
    rows = 1 if out is None else 2
    elements = min(_CHOOSING_MOST, x.size // (rows * x.itemsize))
    if elements < _CHOOSING_LEAST or not are_flat((x, gradient, x if out is None else out)):
        return _relu_gradient_by_mask(x, gradient, out)
    kernel = BlockKernel(_relu_gradient_by_bits, rows, block_elements=elements)
    return in_blocks(kernel, (np.empty_like(x) if out is None else out, gradient, x))


def _sigmoid(out: FloatArray, x: FloatArray, room: FloatArray) -> None:
    largest, cap, one = _LIMITS[x.dtype]
    if x.flags.c_contiguous and x.item(x.argmax()) <= largest:
        exp(x, out)
    else:
        minimum(x, cap, out=out)
        exp(out, out)
    t = add(out, one, room[0])
    divide(out, t, out)


def _sigmoid_gradient(
    out: FloatArray | None,
    gradient: FloatArray,
    x: FloatArray,
    room: FloatArray | tuple[None, None] = (None, None),
) -> FloatArray:
    largest, _, one = _LIMITS[x.dtype]
    if x.size and not x.item(x.argmax()) <= largest:
        with _BEHIND_THE_CAP:
            return _sigmoid_gradient_behind_the_cap(out, gradient, x)
    e, t = room
    e = exp(x, e)
    t = add(e, one, t)
    divide(e, t, e)
    divide(e, t, e)
    return multiply(gradient, e, out)


def _sigmoid_gradient_behind_the_cap(
    out: FloatArray | None, gradient: FloatArray, x: FloatArray
) -> FloatArray:
    """The same where an element is nan or larger than the cap."""
    _, cap, one = _LIMITS[x.dtype]
    e = exp(minimum(x, cap))
    t = e + one
    slope = e / t / t
    behind = x > cap
    slope[behind] = exp(-x[behind])
    lost = behind & (slope == 0.0) & np.isinf(gradient)
    product: FloatArray = multiply(np.where(lost, gradient.dtype.type(0), gradient), slope, out)
    return product


def _relu_gradient_by_mask(
    x: FloatArray, gradient: FloatArray, out: FloatArray | None
) -> FloatArray:
    flat = less_equal(x, 0.0)
    if out is None:
        return np.where(flat, gradient.dtype.type(0), gradient)
    np.copyto(out, gradient)
    np.copyto(out, 0.0, where=flat)
    return out


def _relu_gradient_by_bits(
    out: FloatArray, gradient: FloatArray, x: FloatArray, room: FloatArray
) -> None:
    """By a mask NumPy takes as long as for twenty steps of arithmetic: it branches at each."""
    integer = _INTEGER[x.dtype]
    flat = room[-1].view(np.int8)[: x.size]
    less_equal(x, 0.0, flat.view(np.bool_))
    bits = (out if len(room) == 1 else room[0]).view(integer)
    bits[...] = flat
    subtract(bits, 1, bits)
    bitwise_and(gradient.view(integer), bits, out.view(integer))


_SIGMOID = BlockKernel(_sigmoid, 1, has_lanes=True)
_SIGMOID_GRADIENT = BlockKernel(_sigmoid_gradient, 2, has_lanes=True)

IN_BLOCKS = frozenset({sigmoid, sigmoid_gradient})
"""Those that lanes share; they have `lanes`."""
