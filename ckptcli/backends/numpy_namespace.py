"""The namespace of the NumPy backend: what ops call, as one flat list.

NumPy's own functions where they do, kernels of our own where NumPy has none or where a naive
expression would hold full-size temporaries.

Invariant: the value of a function depends on its operands alone, not on `out`, so that computing
again gives the same bits. Every result is an array of rank 1 or more, never a NumPy scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import (
    absolute as absolute,
    add as add,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    copysign as copysign,
    cos as cos,
    divide as divide,
    exp as exp,
    greater as greater,
    less as less,
    log as log,
    log1p as log1p,
    maximum as maximum,
    multiply as multiply,
    negative as negative,
    power as power,
    reciprocal as reciprocal,
    sign as sign,
    sin as sin,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tanh as tanh,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)
from numpy.typing import NDArray

from ckptcli.backends.numpy_special import (
    erf as erf,
    gelu as gelu,
    gelu_gradient as gelu_gradient,
    relu as relu,
    relu_gradient as relu_gradient,
    sigmoid as sigmoid,
    sigmoid_gradient as sigmoid_gradient,
)

AnyArray = NDArray[Any]


def matmul(lhs: AnyArray, rhs: AnyArray) -> AnyArray:
    """Matrix product over the last two axes; `dot` skips a third of the call's overhead."""
    if lhs.ndim == 2 == rhs.ndim:
        product: AnyArray = np.dot(lhs, rhs)
        return product
    if lhs.ndim < 2 or rhs.ndim < 2:
        raise ValueError("a matrix product needs operands of rank 2 or more")
    batched: AnyArray = np.matmul(lhs, rhs)
    return batched


def matrix_transpose(x: AnyArray) -> AnyArray:
    """The last two axes swapped, as a view."""
    return x.T if x.ndim == 2 else x.swapaxes(-1, -2)


def swap_dims(x: AnyArray, first: int, second: int) -> AnyArray:
    """Two axes swapped, as a view."""
    return x.swapaxes(first, second)


def permute_dims(x: AnyArray, axes: tuple[int, ...]) -> AnyArray:
    """The axes in another order, as a view."""
    return x.transpose(axes)


def reshape(x: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Another shape of the same size: a view where the strides allow it."""
    return x.reshape(shape)


def concat(arrays: Sequence[AnyArray], dim: int) -> AnyArray:
    """Arrays joined along one axis."""
    return np.concatenate(arrays, axis=dim)


def take_slices(x: AnyArray, slices: tuple[slice, ...]) -> AnyArray:
    """Basic slicing, as a view."""
    view: AnyArray = x[slices]
    return view


def put_slices(shape: tuple[int, ...], slices: tuple[slice, ...], values: AnyArray) -> AnyArray:
    """Zeros of `shape` with `values` at `slices`."""
    whole: AnyArray = np.zeros(shape, dtype=values.dtype)
    whole[slices] = values
    return whole


def sum_all(x: AnyArray) -> AnyArray:
    """The sum of all elements, shape (1,)."""
    total: AnyArray = np.add.reduce(x, axis=None, keepdims=True)
    return total.reshape(1)


def sum_dim(x: AnyArray, dim: int) -> AnyArray:
    """The sum over one axis, which stays with size 1."""
    total: AnyArray = np.add.reduce(x, axis=dim, keepdims=True)
    return total


def max_dim(x: AnyArray, dim: int) -> AnyArray:
    """The maximum over one axis, which stays with size 1."""
    largest: AnyArray = np.maximum.reduce(x, axis=dim, keepdims=True)
    return largest


def argmax(x: AnyArray, dim: int) -> AnyArray:
    """The index of the first maximum along one axis, which stays with size 1."""
    indices: AnyArray = np.argmax(x, axis=dim, keepdims=True)
    return indices


def put_along_dim(
    shape: tuple[int, ...], indices: AnyArray, values: AnyArray, dim: int
) -> AnyArray:
    """Zeros of `shape` with `values` at `indices` along one axis."""
    whole: AnyArray = np.zeros(shape, dtype=values.dtype)
    np.put_along_axis(whole, indices, values, dim)
    return whole


def ones_seed(like: AnyArray) -> AnyArray:
    """Ones of `like`'s shape that take the bytes of one element (strides 0, read-only)."""
    return np.broadcast_to(np.ones((1,) * like.ndim, dtype=like.dtype), like.shape)


def asbool(mask: Any) -> AnyArray:
    """A boolean array with the values of `mask`."""
    return np.array(mask, dtype=bool)


def all_finite(x: AnyArray) -> bool:
    """Whether no element is infinite or not a number."""
    return bool(np.isfinite(x).all())


def storage_of(x: AnyArray) -> AnyArray:
    """The array that owns the memory of `x`: itself, or what it is a view of."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def storage_id(x: AnyArray) -> int:
    """The identity of the memory of `x`, valid while it lives."""
    return id(storage_of(x))
