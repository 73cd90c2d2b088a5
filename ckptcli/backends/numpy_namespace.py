"""The namespace of the NumPy backend: what ops call, as one flat list.

NumPy's own functions where they do, kernels of our own where NumPy has none or where a naive
expression would hold full-size temporaries.

Invariant: the value of a function depends on its operands alone, not on `out`, so that computing
again gives the same bits. Every result is an array of rank 1 or more, never a NumPy scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache as _cache
from typing import Any

import numpy as np
from numpy import (
    add as add,
    arange as arange,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    ceil as ceil,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    divide as divide,
    equal as equal,
    exp as exp,
    expm1 as expm1,
    flip as flip,
    floor as floor,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    less as less,
    less_equal as less_equal,
    log as log,
    log1p as log1p,
    logical_and as logical_and,
    logical_or as logical_or,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    not_equal as not_equal,
    reciprocal as reciprocal,
    remainder as remainder,
    roll as roll,
    sign as sign,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    take as take,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
    where as where,
    zeros_like as zeros_like,
)
from numpy.typing import NDArray

from ckptcli.backends.host_copy import HostCopy
from ckptcli.backends.numpy_erf import erf as erf, gelu as gelu, gelu_gradient as gelu_gradient
from ckptcli.backends.numpy_special import (
    relu as relu,
    relu_gradient as relu_gradient,
    sigmoid as sigmoid,
    sigmoid_gradient as sigmoid_gradient,
)
from ckptcli.backends.numpy_svd import svd as svd
from ckptcli.backends.random_keys import RandomKey, draw as _draw

AnyArray = NDArray[Any]

# The standard's names for what NumPy has long called otherwise.
abs = np.absolute
acos = np.arccos
acosh = np.arccosh
asin = np.arcsin
asinh = np.arcsinh
atan = np.arctan
atan2 = np.arctan2
atanh = np.arctanh
pow = np.power


def negative(x: AnyArray, out: AnyArray | None = None) -> AnyArray:
    """-x. NumPy 2.4 negates elements 16 bytes apart (float64: 64) wrongly into such elements."""
    if out is None or out.flags.forc:
        negated: AnyArray = np.negative(x, out)
        return negated
    out[...] = np.negative(x)
    return out


def matmul(lhs: AnyArray, rhs: AnyArray) -> AnyArray:
    """Matrix product over the last two axes; the method `dot` skips half of the call's overhead."""
    if lhs.ndim == 2 == rhs.ndim:
        product: AnyArray = lhs.dot(rhs)
        return product
    if lhs.ndim < 2 or rhs.ndim < 2:
        raise ValueError("a matrix product needs operands of rank 2 or more")
    batched: AnyArray = np.matmul(_packed(lhs), _packed(rhs))
    return batched


def _packed(matrices: AnyArray) -> AnyArray:
    """A copy of rows or columns that share memory, for which NumPy does not call the BLAS."""
    return np.ascontiguousarray(matrices) if 0 in matrices.strides[-2:] else matrices


def matrix_transpose(x: AnyArray) -> AnyArray:
    """The last two axes swapped, as a view."""
    view: AnyArray = x.T if x.ndim == 2 else x.swapaxes(-1, -2)
    return view


def swap_dims(x: AnyArray, first: int, second: int) -> AnyArray:
    """Two axes swapped, as a view."""
    view: AnyArray = x.swapaxes(first, second)
    return view


def permute_dims(x: AnyArray, axes: tuple[int, ...]) -> AnyArray:
    """The axes in another order, as a view."""
    view: AnyArray = x.transpose(axes)
    return view


def reshape(x: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Another shape of the same size: a view where the strides allow it."""
    shaped: AnyArray = x.reshape(shape)
    return shaped


def concat(arrays: Sequence[AnyArray], dim: int) -> AnyArray:
    """Arrays joined along one axis."""
    return np.concatenate(arrays, axis=dim)


def take_slices(x: AnyArray, slices: tuple[slice, ...]) -> AnyArray:
    """Basic slicing, as a view."""
    view: AnyArray = x[slices]
    return view


def put_slices(
    shape: tuple[int, ...], slices: tuple[slice, ...], values: AnyArray, fill: float = 0.0
) -> AnyArray:
    """`fill`, in `shape`, with `values` at `slices`."""
    whole: AnyArray = np.full(shape, fill, values.dtype) if fill else np.zeros(shape, values.dtype)
    whole[slices] = values
    return whole


def with_slices(x: AnyArray, slices: tuple[slice, ...], values: AnyArray) -> AnyArray:
    """A copy of x with `values` at `slices`."""
    whole: AnyArray = x.copy()
    whole[slices] = values
    return whole


def add_slices(x: AnyArray, slices: tuple[slice, ...], values: AnyArray) -> AnyArray:
    """X itself, with `values` added at `slices`; for an array that nobody else holds."""
    x[slices] += values
    return x


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


def min_dim(x: AnyArray, dim: int) -> AnyArray:
    """The minimum over one axis, which stays with size 1."""
    smallest: AnyArray = np.minimum.reduce(x, axis=dim, keepdims=True)
    return smallest


def prod_dim(x: AnyArray, dim: int) -> AnyArray:
    """The product over one axis, which stays with size 1."""
    product: AnyArray = np.multiply.reduce(x, axis=dim, keepdims=True)
    return product


def cumulative_sum(x: AnyArray, dim: int) -> AnyArray:
    """The running sum along one axis."""
    return np.add.accumulate(x, axis=dim)


def cumulative_prod(x: AnyArray, dim: int) -> AnyArray:
    """The running product along one axis."""
    return np.multiply.accumulate(x, axis=dim)


def cumulative_min(x: AnyArray, dim: int) -> AnyArray:
    """The smallest element so far along one axis."""
    return np.minimum.accumulate(x, axis=dim)


def cumulative_max(x: AnyArray, dim: int) -> AnyArray:
    """The largest element so far along one axis."""
    return np.maximum.accumulate(x, axis=dim)


def argmin(x: AnyArray, dim: int) -> AnyArray:
    """The index of the first minimum along one axis, which stays with size 1."""
    indices: AnyArray = np.argmin(x, axis=dim, keepdims=True)
    return indices


def argsort(x: AnyArray, dim: int, descending: bool) -> AnyArray:
    """The stable order along one axis; nan counts as the largest, as in a maximum."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    backwards = np.argsort(np.flip(x, (dim,)), axis=dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - backwards, (dim,))


def round(x: AnyArray) -> AnyArray:
    """The nearest whole number, halves to the even one."""
    return np.rint(x)


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


def scatter(flat: AnyArray, positions: AnyArray, values: AnyArray, update: str) -> AnyArray:
    """A copy of a rank-1 array with values put at positions, one after the other.

    `update` says how: add, assign, mul, min, max.
    """
    changed: AnyArray = flat.copy()
    if update == "assign":
        changed[positions] = values
    else:
        _UPDATES[update].at(changed, positions, values)
    return changed


_UPDATES = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def true_positions(mask: AnyArray) -> AnyArray:
    """Where a rank-1 mask is true."""
    return np.flatnonzero(mask)


def rfft(x: AnyArray, dim: int) -> AnyArray:
    """The discrete Fourier transform along one axis: real parts, then imaginary, on axis 0."""
    transform = np.fft.rfft(x, axis=dim)
    return np.concatenate([transform.real, transform.imag], axis=0).astype(x.dtype, copy=False)


def irfft(real: AnyArray, imaginary: AnyArray, length: int, dim: int) -> AnyArray:
    """The inverse of `rfft` for `length` real numbers."""
    return np.fft.irfft(real + 1j * imaginary, length, dim).astype(real.dtype, copy=False)


def zeros(shape: tuple[int, ...], like: AnyArray) -> AnyArray:
    """Zeros in `shape` in the dtype of `like`."""
    return np.zeros(shape, dtype=like.dtype)


def array_like(data: Any, like: AnyArray) -> AnyArray:
    """Numbers as an array in the dtype of `like`."""
    return np.asarray(data, dtype=like.dtype)


def astype(x: AnyArray, dtype: str) -> AnyArray:
    """A copy in another float dtype; a mask gives 0 and 1."""
    return x.astype(dtype)


def asindices(data: Any) -> AnyArray:
    """`data` as an array of integers, rank 1 or more.

    Raises:
        ValueError: numbers that are not whole.
    """
    array: AnyArray = np.atleast_1d(np.asarray(data))
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"indices must be whole numbers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def zeros_indices(shape: tuple[int, ...]) -> AnyArray:
    """Integer zeros."""
    return np.zeros(shape, dtype=np.int64)


def indices_within(indices: AnyArray, size: int) -> bool:
    """Whether all indices are 0 or more, and below `size`."""
    return not indices.size or bool(indices.min() >= 0 and indices.max() < size)


def random(key: RandomKey, shape: tuple[int, ...], dtype: str) -> AnyArray:
    """The values of a random key."""
    return _draw(key, shape).astype(dtype, copy=False)


def ones_seed(like: AnyArray) -> AnyArray:
    """Ones of `like`'s shape that take the bytes of one element (strides 0, read-only)."""
    return np.broadcast_to(np.ones((1,) * like.ndim, dtype=like.dtype), like.shape)


def asbool(mask: Any) -> AnyArray:
    """A boolean array with the values of `mask`."""
    return np.array(mask, dtype=bool)


def all_finite(x: AnyArray) -> bool:
    """Whether no element is infinite or not a number."""
    return bool(np.isfinite(x).all())


def to_host(x: AnyArray) -> HostCopy:
    """A copy in host memory, its axes in the same order."""
    return HostCopy(x.copy(order="K"), x.nbytes)


def from_host(copied: HostCopy) -> AnyArray:
    """An array of the device's from a copy in host memory."""
    array: AnyArray = copied.array.copy(order="K")
    return array


def dtype_name(x: AnyArray) -> str:
    """The name of the element type, `float32`."""
    return _name_of(x.dtype)


@_cache
def _name_of(dtype: np.dtype[Any]) -> str:
    """NumPy works a name out anew each time."""
    return str(dtype)


def nbytes(x: AnyArray) -> int:
    """The bytes of the elements."""
    return x.nbytes


def storage_of(x: AnyArray) -> AnyArray:
    """The array that owns the memory of `x`: itself, or what it is a view of."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def storage_layout(x: AnyArray) -> tuple[tuple[int, ...], str, int]:
    """Shape, dtype and bytes of the array that owns the memory of `x`."""
    owner = storage_of(x)
    return owner.shape, _name_of(owner.dtype), owner.nbytes


def storage_id(x: AnyArray) -> int:
    """The identity of the memory of `x`, valid while it lives."""
    return id(storage_of(x))
