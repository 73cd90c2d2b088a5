"""A second array library for tests: array-api-strict, which has nothing but the standard.

An op that leans on what only NumPy arrays can do fails here. What the standard lacks is supplied as
a backend has to supply it: composed of standard functions, or by a kernel on the memory behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import array_api_strict as standard
import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.backends import numpy_namespace
from ckptcli.backends.base import Backend
from ckptcli.backends.host_copy import HostCopy
from ckptcli.backends.numpy_backend import NumpyBackend

Strict = Any
"""An array of array-api-strict."""

UNARY = (
    *(
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "expm1",
    ),
    *("floor", "log", "log1p", "negative", "reciprocal", "round", "sign", "sin", "sinh", "sqrt"),
    *("square", "tan", "tanh", "trunc", "zeros_like"),
)
BINARY = (
    *("add", "atan2", "copysign", "divide", "equal", "greater", "greater_equal", "hypot", "less"),
    *(
        "less_equal",
        "logical_and",
        "logical_or",
        "maximum",
        "minimum",
        "multiply",
        "not_equal",
        "pow",
    ),
    *("remainder", "subtract"),
)


def _without_out(name: str, operands: int) -> Callable[..., Strict]:
    """The standard's function; the array to write into is not looked at."""
    function = getattr(standard, name)
    return lambda *arguments: function(*arguments[:operands])


def _raw(x: Any) -> Any:
    return x._array if hasattr(x, "_array") else x


def _kernel(name: str) -> Callable[..., Strict]:
    """The NumPy backend's own kernel, on the memory behind."""
    function = getattr(numpy_namespace, name)
    return lambda *arguments: standard.asarray(function(*map(_raw, arguments)))


def _within(x: Strict, slices: tuple[Any, ...]) -> tuple[Any, ...]:
    """Slices whose bounds lie inside of the array: beyond them the standard says nothing."""
    if slices and slices[0] is ...:
        axes = range(len(x.shape) - len(slices) + 1, len(x.shape))
        return (..., *(_bounded(s, x.shape[a]) for s, a in zip(slices[1:], axes)))
    return (*(_bounded(s, size) for s, size in zip(slices, x.shape)), ...)


def _bounded(part: slice, size: int) -> slice:
    start, stop, step = part.indices(size)
    if (stop - start) * step <= 0:
        return slice(0, 0)
    return slice(start, None if stop < 0 else stop, step)


class StrictNamespace:
    """The functions that ops call."""

    def __init__(self) -> None:
        for names, operands in ((UNARY, 1), (BINARY, 2)):
            for name in names:
                setattr(self, name, _without_out(name, operands))
        for name in (
            "cumulative_max",
            "cumulative_min",
            "put_along_dim",
            "scatter",
            "erf",
            "gelu",
            "random",
        ):
            setattr(self, name, _kernel(name))

    where = staticmethod(standard.where)
    broadcast_to = staticmethod(standard.broadcast_to)
    broadcast_shapes = staticmethod(np.broadcast_shapes)
    matrix_transpose = staticmethod(standard.matrix_transpose)
    permute_dims = staticmethod(standard.permute_dims)
    reshape = staticmethod(standard.reshape)
    arange = staticmethod(standard.arange)

    def matmul(self, lhs: Strict, rhs: Strict) -> Strict:
        if lhs.ndim < 2 or rhs.ndim < 2:
            raise ValueError("a matrix product needs operands of rank 2 or more")
        return standard.matmul(lhs, rhs)

    def swap_dims(self, x: Strict, first: int, second: int) -> Strict:
        axes = list(range(x.ndim))
        axes[first], axes[second] = axes[second], axes[first]
        return standard.permute_dims(x, tuple(axes))

    def concat(self, arrays: Sequence[Strict], dim: int) -> Strict:
        return standard.concat(list(arrays), axis=dim)

    def take(self, x: Strict, indices: Strict, dim: int) -> Strict:
        return standard.take(x, indices, axis=dim)

    def flip(self, x: Strict, axes: tuple[int, ...]) -> Strict:
        return standard.flip(x, axis=axes)

    def roll(self, x: Strict, shift: int, dim: int) -> Strict:
        return standard.roll(x, shift, axis=dim)

    def take_slices(self, x: Strict, slices: tuple[Any, ...]) -> Strict:
        return x[_within(x, slices)]

    def put_slices(
        self, shape: tuple[int, ...], slices: tuple[Any, ...], values: Strict, fill: float = 0.0
    ) -> Strict:
        whole = standard.full(shape, fill, dtype=values.dtype)
        whole[_within(whole, slices)] = values
        return whole

    def with_slices(self, x: Strict, slices: tuple[Any, ...], values: Strict) -> Strict:
        whole = standard.asarray(x, copy=True)
        whole[_within(whole, slices)] = values
        return whole

    def add_slices(self, x: Strict, slices: tuple[Any, ...], values: Strict) -> Strict:
        index = _within(x, slices)
        x[index] = x[index] + values
        return x

    def sum_all(self, x: Strict) -> Strict:
        return standard.reshape(standard.sum(x), (1,))

    def sum_dim(self, x: Strict, dim: int) -> Strict:
        return standard.sum(x, axis=dim, keepdims=True)

    def prod_dim(self, x: Strict, dim: int) -> Strict:
        return standard.prod(x, axis=dim, keepdims=True)

    def max_dim(self, x: Strict, dim: int) -> Strict:
        return standard.max(x, axis=dim, keepdims=True)

    def min_dim(self, x: Strict, dim: int) -> Strict:
        return standard.min(x, axis=dim, keepdims=True)

    def argmax(self, x: Strict, dim: int) -> Strict:
        return standard.argmax(x, axis=dim, keepdims=True)

    def argmin(self, x: Strict, dim: int) -> Strict:
        return standard.argmin(x, axis=dim, keepdims=True)

    def argsort(self, x: Strict, dim: int, descending: bool) -> Strict:
        return standard.argsort(x, axis=dim, descending=descending, stable=True)

    def cumulative_sum(self, x: Strict, dim: int) -> Strict:
        return standard.cumulative_sum(x, axis=dim)

    def cumulative_prod(self, x: Strict, dim: int) -> Strict:
        return standard.cumulative_prod(x, axis=dim)

    def to_host(self, x: Strict) -> HostCopy:
        return HostCopy(standard.asarray(x, copy=True), self.nbytes(x))

    def from_host(self, copied: HostCopy) -> Strict:
        return standard.asarray(copied.array, copy=True)

    def svd(self, x: Strict) -> Strict:
        if not self.all_finite(x):
            n = x.shape[0]
            return standard.full((2 * n + 1, n), math.nan, dtype=x.dtype)
        u, s, vt = standard.linalg.svd(x)
        return standard.concat([u, s[None, :], standard.matrix_transpose(vt)], axis=0)

    def true_positions(self, mask: Strict) -> Strict:
        return standard.nonzero(mask)[0]

    def rfft(self, x: Strict, dim: int) -> Strict:
        transform = standard.fft.rfft(x, axis=dim)
        return standard.concat([standard.real(transform), standard.imag(transform)], axis=0)

    def irfft(self, real: Strict, imaginary: Strict, length: int, dim: int) -> Strict:
        parts = standard.astype(real, standard.complex128) + 1j * standard.astype(
            imaginary, standard.complex128
        )
        return standard.astype(standard.fft.irfft(parts, n=length, axis=dim), real.dtype)

    def sigmoid(self, x: Strict) -> Strict:
        e = standard.exp(standard.minimum(x, 88.0 if x.dtype == standard.float32 else 709.0))
        return e / (e + 1.0)

    def sigmoid_gradient(self, x: Strict, gradient: Strict, out: Any = None) -> Strict:
        return gradient * self.sigmoid(x) * self.sigmoid(-x)

    def relu(self, x: Strict) -> Strict:
        return standard.maximum(x, 0.0)

    def relu_gradient(self, x: Strict, gradient: Strict, out: Any = None) -> Strict:
        return standard.where(x <= 0.0, 0.0, gradient)

    def gelu_gradient(self, x: Strict, gradient: Strict, out: Any = None) -> Strict:
        phi = (self.erf(x * math.sqrt(0.5)) + 1.0) * 0.5
        density = standard.exp(x * x * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
        return gradient * (phi + x * density)

    def zeros(self, shape: tuple[int, ...], like: Strict) -> Strict:
        return standard.zeros(shape, dtype=like.dtype)

    def array_like(self, data: Any, like: Strict) -> Strict:
        return standard.asarray(data, dtype=like.dtype)

    def astype(self, x: Strict, dtype: str) -> Strict:
        return standard.astype(x, getattr(standard, dtype))

    def asindices(self, data: Any) -> Strict:
        return standard.asarray(numpy_namespace.asindices(_raw(data)))

    def asbool(self, mask: Any) -> Strict:
        return standard.asarray(numpy_namespace.asbool(_raw(mask)))

    def zeros_indices(self, shape: tuple[int, ...]) -> Strict:
        return standard.zeros(shape, dtype=standard.int64)

    def indices_within(self, indices: Strict, size: int) -> bool:
        return bool(standard.all((indices >= 0) & (indices < size)))

    def ones_seed(self, like: Strict) -> Strict:
        return standard.ones(like.shape, dtype=like.dtype)

    def all_finite(self, x: Strict) -> bool:
        return bool(standard.all(standard.isfinite(x)))

    def dtype_name(self, x: Strict) -> str:
        return str(_raw(x).dtype)

    def nbytes(self, x: Strict) -> int:
        return int(_raw(x).nbytes)

    def storage_of(self, x: Strict) -> Any:
        return numpy_namespace.storage_of(_raw(x))

    def storage_layout(self, x: Strict) -> tuple[tuple[int, ...], str, int]:
        return numpy_namespace.storage_layout(_raw(x))

    def storage_id(self, x: Strict) -> int:
        return id(self.storage_of(x))


class StrictBackend(Backend):
    """Arrays of array-api-strict, float32 or float64."""

    name = "strict"
    label = "Strict(Cpu)"
    library = f"array-api-strict {standard.__version__}"
    dtypes = NumpyBackend.dtypes
    sees_kernel_memory = True

    def __init__(self) -> None:
        self._numpy = NumpyBackend()
        self.namespace = StrictNamespace()

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Strict:
        return standard.asarray(self._numpy.asarray(_raw(data), dtype, copy))

    def to_numpy(self, array: Strict) -> Any:
        return self._numpy.to_numpy(_raw(array))

    def storage_values(self, storage: Any, dtype: str) -> Any:
        return self._numpy.storage_values(storage, dtype)

    def quiet(self) -> AbstractContextManager[object]:
        return self._numpy.quiet()


def strict_device() -> Device:
    """The device without autodiff."""
    return Device(StrictBackend())
