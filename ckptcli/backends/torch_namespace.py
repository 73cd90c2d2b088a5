"""The namespace of the torch backend: what ops call, on PyTorch tensors without autograd.

Invariant: a function's value depends on its operands alone, not on `out`. Every result has rank 1
or more. Where PyTorch leaves an outcome open (a position that is assigned twice), the order of the
operands decides, as in NumPy.

What has no kernel in half precision (Fourier transforms, svd) is computed in float32 and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ckptcli.backends import numpy_namespace
from ckptcli.backends.composed import DENSITY_END
from ckptcli.backends.host_copy import HostCopy
from ckptcli.backends.random_keys import RandomKey, draw
from ckptcli.backends.slices import forward_slices

Tensor = Any
"""A `torch.Tensor`; PyTorch is not there when types are checked."""

_HALVES = (torch.float16, torch.bfloat16)
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64)
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()} | {torch.bool: "bool"}

LEAST_SATURATED = 16.0
"""Up to here 1 - sigmoid(x) is not 0 in any dtype."""

_UNARY = {
    **{name: name for name in ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil")},
    **{
        name: name
        for name in ("cos", "cosh", "erf", "exp", "expm1", "floor", "log", "log1p", "reciprocal")
    },
    **{name: name for name in ("round", "sigmoid", "sin", "sinh", "sqrt", "square", "tan")},
    "tanh": "tanh",
    "trunc": "trunc",
    "negative": "neg",
}
_BINARY = {
    **{
        name: name
        for name in ("add", "atan2", "copysign", "divide", "hypot", "logical_and", "logical_or")
    },
    "multiply": "multiply",
    "pow": "pow",
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
}


def _unary(name: str) -> Callable[..., Tensor]:
    function = getattr(torch, name)
    return lambda x, out=None: function(x, out=out)


def _binary(name: str) -> Callable[..., Tensor]:
    function = getattr(torch, name)
    return lambda x, y, out=None: function(x, y, out=out)


class TorchNamespace:
    """The functions on one device, which is that of arrays made from nothing."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.__dict__.update({name: _unary(function) for name, function in _UNARY.items()})
        self.__dict__.update({name: _binary(function) for name, function in _BINARY.items()})

    where = staticmethod(torch.where)
    broadcast_to = staticmethod(torch.broadcast_to)
    broadcast_shapes = staticmethod(np.broadcast_shapes)
    reshape = staticmethod(torch.reshape)
    permute_dims = staticmethod(torch.permute)
    flip = staticmethod(torch.flip)
    zeros_like = staticmethod(torch.zeros_like)
    roll = staticmethod(torch.roll)
    swap_dims = staticmethod(torch.transpose)

    @staticmethod
    def sign(x: Tensor) -> Tensor:
        """PyTorch gives 0 for nan."""
        return torch.sign(x).masked_fill_(torch.isnan(x), math.nan)

    @staticmethod
    def subtract(x: Tensor, y: Tensor, out: Tensor = None) -> Tensor:
        if isinstance(x, float | int):
            return torch.rsub(y, x)
        return torch.sub(x, y, out=out)

    @staticmethod
    def maximum(x: Tensor, y: Tensor, out: Tensor = None) -> Tensor:
        if isinstance(y, float | int):
            return torch.clamp_min(x, y, out=out)
        return torch.maximum(x, y, out=out)

    @staticmethod
    def minimum(x: Tensor, y: Tensor, out: Tensor = None) -> Tensor:
        if isinstance(y, float | int):
            return torch.clamp_max(x, y, out=out)
        return torch.minimum(x, y, out=out)

    @staticmethod
    def remainder(x: Tensor, y: Tensor) -> Tensor:
        """Of float32 in float64: PyTorch's own is nan where the quotient is large."""
        if x.dtype is not torch.float32 or x.device.type == "mps":
            return torch.remainder(x, y)
        divisor = y.double() if isinstance(y, torch.Tensor) else y
        return torch.remainder(x.double(), divisor).float()

    @staticmethod
    def matmul(lhs: Tensor, rhs: Tensor) -> Tensor:
        if lhs.ndim < 2 or rhs.ndim < 2:
            raise ValueError("a matrix product needs operands of rank 2 or more")
        return torch.matmul(lhs, rhs)

    @staticmethod
    def matrix_transpose(x: Tensor) -> Tensor:
        return x.mT

    @staticmethod
    def concat(arrays: Sequence[Tensor], dim: int) -> Tensor:
        if any(array.ndim != arrays[0].ndim for array in arrays):
            raise ValueError("arrays of different ranks")
        return torch.cat(list(arrays), dim)

    @staticmethod
    def take(x: Tensor, indices: Tensor, dim: int) -> Tensor:
        return torch.index_select(x, dim, indices)

    @staticmethod
    def take_slices(x: Tensor, slices: tuple[Any, ...]) -> Tensor:
        """A view; a copy where a step is negative, which PyTorch's views cannot have."""
        forward, reversed_axes = forward_slices(x.shape, slices)
        view = x[forward]
        return torch.flip(view, reversed_axes) if reversed_axes else view

    @staticmethod
    def put_slices(
        shape: tuple[int, ...], slices: tuple[Any, ...], values: Tensor, fill: float = 0.0
    ) -> Tensor:
        whole = torch.full(shape, fill, dtype=values.dtype, device=values.device)
        return _assign(whole, slices, values)

    @staticmethod
    def with_slices(x: Tensor, slices: tuple[Any, ...], values: Tensor) -> Tensor:
        return _assign(x.clone(memory_format=torch.contiguous_format), slices, values)

    @staticmethod
    def add_slices(x: Tensor, slices: tuple[Any, ...], values: Tensor) -> Tensor:
        forward, reversed_axes = forward_slices(x.shape, slices)
        x[forward] += torch.flip(values, reversed_axes) if reversed_axes else values
        return x

    @staticmethod
    def sum_all(x: Tensor) -> Tensor:
        return torch.sum(x).reshape(1)

    @staticmethod
    def sum_dim(x: Tensor, dim: int) -> Tensor:
        return torch.sum(x, dim, keepdim=True)

    @staticmethod
    def prod_dim(x: Tensor, dim: int) -> Tensor:
        return torch.prod(x, dim, keepdim=True)

    @staticmethod
    def max_dim(x: Tensor, dim: int) -> Tensor:
        return torch.amax(x, dim, keepdim=True)

    @staticmethod
    def min_dim(x: Tensor, dim: int) -> Tensor:
        return torch.amin(x, dim, keepdim=True)

    @staticmethod
    def argmax(x: Tensor, dim: int) -> Tensor:
        return torch.argmax(x, dim, keepdim=True)

    @staticmethod
    def argmin(x: Tensor, dim: int) -> Tensor:
        return torch.argmin(x, dim, keepdim=True)

    @staticmethod
    def argsort(x: Tensor, dim: int, descending: bool) -> Tensor:
        return torch.argsort(x, dim=dim, descending=descending, stable=True)

    @staticmethod
    def cumulative_sum(x: Tensor, dim: int) -> Tensor:
        return torch.cumsum(x, dim)

    @staticmethod
    def cumulative_prod(x: Tensor, dim: int) -> Tensor:
        return torch.cumprod(x, dim)

    @staticmethod
    def cumulative_max(x: Tensor, dim: int) -> Tensor:
        return torch.cummax(x, dim).values

    @staticmethod
    def cumulative_min(x: Tensor, dim: int) -> Tensor:
        return torch.cummin(x, dim).values

    @staticmethod
    def put_along_dim(shape: tuple[int, ...], indices: Tensor, values: Tensor, dim: int) -> Tensor:
        whole = torch.zeros(shape, dtype=values.dtype, device=values.device)
        return whole.scatter_(dim, indices, values)

    @staticmethod
    def scatter(flat: Tensor, positions: Tensor, values: Tensor, update: str) -> Tensor:
        changed = flat.clone()
        if update == "add":
            return changed.index_add_(0, positions, values)
        if update == "assign":
            last = _last_at_each(positions, flat.shape[0])
            return changed.index_copy_(0, positions[last], values[last])
        return changed.scatter_reduce_(0, positions, values, _REDUCTIONS[update])

    @staticmethod
    def svd(x: Tensor) -> Tensor:
        """U, s and V of a square matrix below each other; nan where x is not finite."""
        try:
            u, s, vt = torch.linalg.svd(_single(x))
        except torch.linalg.LinAlgError:
            return x.new_full((2 * x.shape[0] + 1, x.shape[0]), math.nan)
        return torch.cat([u, s[None, :], vt.mT]).to(x.dtype)

    @staticmethod
    def true_positions(mask: Tensor) -> Tensor:
        return torch.nonzero(mask).reshape(-1)

    @staticmethod
    def rfft(x: Tensor, dim: int) -> Tensor:
        transform = torch.fft.rfft(_single(x), dim=dim)
        return torch.cat([transform.real, transform.imag], 0).to(x.dtype)

    @staticmethod
    def irfft(real: Tensor, imaginary: Tensor, length: int, dim: int) -> Tensor:
        parts = torch.complex(_single(real), _single(imaginary))
        return torch.fft.irfft(parts, length, dim).to(real.dtype)

    @staticmethod
    def sigmoid_gradient(x: Tensor, gradient: Tensor, out: Tensor = None) -> Tensor:
        """With sigmoid(-x) for 1 - sigmoid(x), which is 0 for a large x.

        A slope of 0 there makes an infinite gradient 0, too. On the processor that is looked for
        where an element is that large; elsewhere a look would wait for the device.
        """
        slope = torch.neg(x).sigmoid_()
        slope *= torch.sigmoid(x)
        if x.numel() and (x.device.type != "cpu" or not bool(torch.max(x) <= LEAST_SATURATED)):
            lost = torch.isinf(gradient) & (slope == 0.0) & (x > LEAST_SATURATED)
            gradient = torch.masked_fill(gradient, lost, 0.0)
        return torch.mul(gradient, slope, out=out)

    @staticmethod
    def relu(x: Tensor) -> Tensor:
        return torch.clamp_min(x, 0.0)

    @staticmethod
    def relu_gradient(x: Tensor, gradient: Tensor, out: Tensor = None) -> Tensor:
        flat = torch.le(x, 0.0)
        if out is None:
            return torch.masked_fill(gradient, flat, 0.0)
        return out.copy_(gradient).masked_fill_(flat, 0.0)

    @staticmethod
    def gelu(x: Tensor) -> Tensor:
        """With the complement of the error function, so that no tail is lost."""
        return _normal_share(x).mul_(x)

    @staticmethod
    def gelu_gradient(x: Tensor, gradient: Tensor, out: Tensor = None) -> Tensor:
        phi = _normal_share(x)
        near = torch.clamp(x, -DENSITY_END, DENSITY_END)
        density = torch.mul(near, near).mul_(-0.5).exp_()
        phi.addcmul_(density, near, value=1.0 / math.sqrt(2.0 * math.pi))
        return torch.mul(gradient, phi, out=out)

    @staticmethod
    def zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
        return torch.zeros(shape, dtype=like.dtype, device=like.device)

    @staticmethod
    def array_like(data: Any, like: Tensor) -> Tensor:
        return torch.as_tensor(data, dtype=like.dtype, device=like.device)

    @staticmethod
    def astype(x: Tensor, dtype: str) -> Tensor:
        return x.to(_DTYPES[dtype], copy=True)

    @staticmethod
    def ones_seed(like: Tensor) -> Tensor:
        return torch.ones((1,), dtype=like.dtype, device=like.device).expand(like.shape)

    @staticmethod
    def all_finite(x: Tensor) -> bool:
        return bool(torch.isfinite(x).all())

    @staticmethod
    def indices_within(indices: Tensor, size: int) -> bool:
        return not indices.numel() or bool(((indices >= 0) & (indices < size)).all())

    def arange(self, count: int) -> Tensor:
        return torch.arange(count, device=self.device)

    def zeros_indices(self, shape: tuple[int, ...]) -> Tensor:
        return torch.zeros(shape, dtype=torch.int64, device=self.device)

    def from_host(self, copied: HostCopy) -> Tensor:
        return copied.array.to(self.device, copy=True)

    @staticmethod
    def to_host(x: Tensor) -> HostCopy:
        return HostCopy(x.to("cpu", copy=True), x.nbytes)

    def asindices(self, data: Any) -> Tensor:
        if not isinstance(data, torch.Tensor):
            return torch.tensor(numpy_namespace.asindices(data), device=self.device)
        if data.numel() and (data.is_floating_point() or data.dtype is torch.bool):
            raise ValueError(f"indices must be whole numbers, got {dtype_name(data)}")
        return torch.atleast_1d(data.to(self.device, torch.int64))

    def asbool(self, mask: Any) -> Tensor:
        if isinstance(mask, torch.Tensor):
            return mask.to(self.device, torch.bool, copy=True)
        return torch.tensor(numpy_namespace.asbool(mask), device=self.device)

    def random(self, key: RandomKey, shape: tuple[int, ...], dtype: str) -> Tensor:
        return torch.from_numpy(draw(key, shape)).to(_DTYPES[dtype]).to(self.device)

    @staticmethod
    def dtype_name(x: Tensor) -> str:
        return dtype_name(x)

    @staticmethod
    def nbytes(x: Tensor) -> int:
        return int(x.nbytes)

    @staticmethod
    def storage_of(x: Tensor) -> Any:
        """One object as long as the memory lives, whichever view asks."""
        return x.untyped_storage()

    @staticmethod
    def storage_id(x: Tensor) -> int:
        return id(x.untyped_storage())

    @staticmethod
    def storage_layout(x: Tensor) -> tuple[tuple[int, ...], str, int]:
        """A storage has no shape: that of `x`, the first array in it."""
        return tuple(x.shape), dtype_name(x), x.untyped_storage().nbytes()


_REDUCTIONS = {"mul": "prod", "min": "amin", "max": "amax"}


def dtype_of(name: str) -> Any:
    """PyTorch's dtype of this name."""
    return _DTYPES[name]


def dtype_name(x: Tensor) -> str:
    """The name of the element type, `float32`."""
    return _NAMES.get(x.dtype) or str(x.dtype).removeprefix("torch.")


def _normal_share(x: Tensor) -> Tensor:
    """(1 + erf(x / sqrt(2))) / 2."""
    return torch.special.erfc(torch.mul(x, -math.sqrt(0.5))).mul_(0.5)


def _single(x: Tensor) -> Tensor:
    return x.to(torch.float32) if x.dtype in _HALVES else x


def _assign(whole: Tensor, slices: tuple[Any, ...], values: Tensor) -> Tensor:
    forward, reversed_axes = forward_slices(whole.shape, slices)
    whole[forward] = torch.flip(values, reversed_axes) if reversed_axes else values
    return whole


def _last_at_each(positions: Tensor, size: int) -> Tensor:
    """Which elements of `positions` are the last with their value."""
    order = torch.arange(positions.shape[0], device=positions.device)
    last = torch.zeros(size, dtype=torch.int64, device=positions.device)
    last.scatter_reduce_(0, positions, order, "amax")
    return last[positions] == order
