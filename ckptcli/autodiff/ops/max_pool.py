"""Max pools over the last dims: compute bound, keep their input, and the integer indices beside it.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import KEEPS_INPUT, Op, one_flop_an_input
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import INDICES_KEPT, along_dim, put_at, take_at
from ckptcli.autodiff.spatial import Sizes, for_each, spatial_sizes
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.autodiff.windows import Window, pad, windows
from ckptcli.backends.base import Array
from ckptcli.graph import Bound

Pool: TypeAlias = tuple[tuple[Window, ...], tuple[int, ...], bool]
"""The window and the padding of each dim, and whether the last window may reach over the end."""

OUTSIDE = -1
"""The index of the maximum of a window without an element."""


def _in_windows(xp: Any, x: Any, pool: Pool, fill: float) -> Any:
    """[batch, channels, *places, elements of a window]."""
    moves, padding, ceil_mode = pool
    after = []
    for window, zeros, size in zip(moves, padding, x.shape[2:]):
        missing = window.missing(size + 2 * zeros) if ceil_mode else 0
        window.count(size + 2 * zeros + missing)  # refused before anything is padded
        after.append(zeros + missing)
    x = pad(xp, x, padding, tuple(after), fill)
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
    sources = _in_windows(xp, places, pool, OUTSIDE)
    flat_shape = (*out.shape, 1)
    maxima = xp.argmax(_in_windows(xp, x, pool, -math.inf), -1)
    whole = (*out.shape, sources.shape[-1])
    sources = xp.broadcast_to(sources, whole)
    positions = along_dim(xp, whole, maxima, len(whole) - 1, flat_shape)
    return take_at(xp, sources, positions, out.shape)


def _max_pool_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    shape = kept.pop().shape
    channels, inside = math.prod(shape[:2]), math.prod(shape[2:])
    rows = (channels, math.prod(grad.shape[2:]))
    grad = xp.where(xp.equal(step.state, OUTSIDE), 0.0, grad)
    indices = xp.reshape(xp.maximum(step.state, 0), rows)
    positions = along_dim(xp, (channels, inside), indices, 1, rows)
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


def _pool(
    dims: int, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Pool:
    each = zip(
        for_each("kernel_size", kernel, dims),
        for_each("stride", stride, dims),
        for_each("dilation", dilation, dims),
    )
    return tuple(Window(*sizes) for sizes in each), for_each("padding", padding, dims), ceil_mode


@operation()
def max_pool1d(
    x: Tensor,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of each window over the last dim."""
    spatial_sizes(x, 1, "max_pool1d")
    return unary(MAX_POOL1D, x, _pool(1, kernel_size, stride, padding, dilation, ceil_mode))


@operation()
def max_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of each window over the last two dims."""
    spatial_sizes(x, 2, "max_pool2d")
    return unary(MAX_POOL2D, x, _pool(2, kernel_size, stride, padding, dilation, ceil_mode))


@method()
def max_pool1d_with_indices(
    x: Tensor,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Array]:
    """The maximum of each window, and where it is in its channel."""
    out = max_pool1d(x, kernel_size, stride, padding, dilation, ceil_mode)
    return out, _indices_of(x, out, _pool(1, kernel_size, stride, padding, dilation, ceil_mode))


@method()
def max_pool2d_with_indices(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Array]:
    """The maximum of each window, and where it is in its channel, counted flat."""
    out = max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode)
    return out, _indices_of(x, out, _pool(2, kernel_size, stride, padding, dilation, ceil_mode))


def _indices_of(x: Tensor, out: Tensor, pool: Pool) -> Array:
    indices: Array = _indices(x.device.namespace, out.value, x.value, pool)
    return indices
