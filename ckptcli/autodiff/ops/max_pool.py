"""Max pools over the last dims: compute bound, keep their input, and the integer indices beside it.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import KEEPS_INPUT, Op, one_flop_an_input
from ckptcli.autodiff.ops.convolution import Sizes, for_each
from ckptcli.autodiff.ops.indexing import INDICES_KEPT
from ckptcli.autodiff.ops.resample import spatial_sizes
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import along_dim, put_at, take_at
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.autodiff.windows import Window, pad, windows
from ckptcli.backends.base import Array
from ckptcli.graph import Bound

Pool: TypeAlias = tuple[tuple[Window, ...], tuple[int, ...]]
"""The window and the padding of each dim."""


def _in_windows(xp: Any, x: Any, pool: Pool, fill: float) -> Any:
    """[batch, channels, *places, elements of a window]."""
    moves, padding = pool
    x = pad(xp, x, padding, padding, fill)
    for axis, window in enumerate(moves):
        x = windows(xp, x, 2 + axis, window)
    rank = len(moves)
    return xp.reshape(x, (*x.shape[: 2 + rank], math.prod(w.size for w in moves)))


def _max_pool(xp: Any, x: Any, pool: Pool) -> Any:
    largest = xp.max_dim(_in_windows(xp, x, pool, -math.inf), -1)
    return xp.reshape(largest, largest.shape[:-1])


def _indices(xp: Any, out: Any, x: Any, pool: Pool) -> Any:
    """Where in its channel each maximum is, counted flat, in the shape of the output."""
    size = x.shape[2:]
    places = xp.reshape(xp.arange(math.prod(size)), (1, 1, *size))
    sources = _in_windows(xp, places, pool, 0)
    flat_shape = (*out.shape, 1)
    chosen = xp.argmax(_in_windows(xp, x, pool, -math.inf), -1)
    whole = (*out.shape, sources.shape[-1])
    sources = xp.broadcast_to(sources, whole)
    positions = along_dim(xp, whole, chosen, len(whole) - 1, flat_shape)
    return take_at(xp, sources, positions, out.shape)


def _max_pool_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    shape = kept.pop().shape
    channels, inside = math.prod(shape[:2]), math.prod(shape[2:])
    rows = (channels, math.prod(grad.shape[2:]))
    positions = along_dim(xp, (channels, inside), xp.reshape(step.state, rows), 1, rows)
    whole = put_at(xp, xp.zeros((channels, inside), grad), positions, grad, "add")
    return xp.reshape(whole, shape)


def _declared(dims: int) -> Op:
    return Op(
        f"max_pool{dims}d",
        Bound.COMPUTE,
        1,
        forward=_max_pool,
        backward=_max_pool_gradient,
        keeps=KEEPS_INPUT,
        state=_indices,
        flops=one_flop_an_input,
        note=INDICES_KEPT,
    )


MAX_POOL1D, MAX_POOL2D = _declared(1), _declared(2)


def _pool(dims: int, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Pool:
    each = zip(for_each(kernel, dims), for_each(stride, dims), for_each(dilation, dims))
    return tuple(Window(*sizes) for sizes in each), for_each(padding, dims)


@operation()
def max_pool1d(
    x: Tensor, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Tensor:
    """The maximum of each window over the last dim."""
    spatial_sizes(x, 1, "max_pool1d")
    return unary(MAX_POOL1D, x, _pool(1, kernel_size, stride, padding, dilation))


@operation()
def max_pool2d(
    x: Tensor, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1
) -> Tensor:
    """The maximum of each window over the last two dims."""
    spatial_sizes(x, 2, "max_pool2d")
    return unary(MAX_POOL2D, x, _pool(2, kernel_size, stride, padding, dilation))


@method()
def max_pool1d_with_indices(
    x: Tensor, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1
) -> tuple[Tensor, Array]:
    """The maximum of each window, and where it is in its channel."""
    out = max_pool1d(x, kernel_size, stride, padding, dilation)
    return out, _indices_of(x, out, _pool(1, kernel_size, stride, padding, dilation))


@method()
def max_pool2d_with_indices(
    x: Tensor, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1
) -> tuple[Tensor, Array]:
    """The maximum of each window, and where it is in its channel, counted flat."""
    out = max_pool2d(x, kernel_size, stride, padding, dilation)
    return out, _indices_of(x, out, _pool(2, kernel_size, stride, padding, dilation))


def _indices_of(x: Tensor, out: Tensor, pool: Pool) -> Array:
    indices: Array = _indices(x.device.namespace, out.value, x.value, pool)
    return indices
