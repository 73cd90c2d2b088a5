"""Ops that move or repeat elements: flip, repeat_dim, unfold, cast.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Flow, Op, no_flop
from ckptcli.autodiff.ops.shape import positive_dim
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.autodiff.windows import Window, fold, windows
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _shape(xp: Any, out: Any, x: Any, params: Any) -> Any:
    return x.shape


def _repeat_dim(xp: Any, x: Any, params: tuple[int, int]) -> Any:
    dim, times = params
    return xp.concat([x] * times, dim)


def _repeat_dim_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    dim, times = step.params
    shape = step.state
    split = (*shape[:dim], times, *shape[dim:])
    return xp.reshape(xp.sum_dim(xp.reshape(grad, split), dim), shape)


def _unfold(xp: Any, x: Any, params: tuple[int, Window]) -> Any:
    return windows(xp, x, *params)


def _unfold_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    dim, window = step.params
    return fold(xp, grad, dim, window, step.state[dim])


FLIP = Op(
    "flip",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, axes: xp.flip(x, axes),
    backward=lambda xp, grad, owned, kept, step: xp.flip(grad, step.params),
    flow=Flow.PASSED,
    flops=no_flop,
)
REPEAT_DIM = Op(
    "repeat_dim",
    Bound.MEMORY,
    1,
    forward=_repeat_dim,
    backward=_repeat_dim_gradient,
    state=_shape,
    flops=no_flop,
)
UNFOLD = Op(
    "unfold",
    Bound.COMPUTE,
    1,
    forward=_unfold,
    backward=_unfold_gradient,
    state=_shape,
    flops=no_flop,
)
CAST = Op(
    "cast",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dtype: xp.astype(x, dtype),
    backward=lambda xp, grad, owned, kept, step: xp.astype(grad, step.state),
    state=lambda xp, out, x, dtype: xp.dtype_name(x),
    flops=no_flop,
)


@operation()
def flip(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The order along each of `axes` reversed."""
    return unary(FLIP, x, tuple(positive_dim(x, axis) for axis in axes))


@operation()
def repeat_dim(x: Tensor, dim: int, times: int) -> Tensor:
    """X after itself, `times` times along `dim`."""
    if times < 1:
        raise ShapeError(f"`repeat_dim` cannot repeat {times} times")
    return unary(REPEAT_DIM, x, (positive_dim(x, dim), times))


@operation()
def unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """The windows of `size` along `dim`, one every `step`; a window is the new last dim."""
    axis = positive_dim(x, dim)
    return unary(UNFOLD, x, (axis, Window(size, step)))


@operation()
def cast(x: Tensor, dtype: str) -> Tensor:
    """The values in another dtype; the tensor itself where it has that dtype."""
    return x if x.dtype == dtype else cast_always(x, dtype)


def cast_always(x: Tensor, dtype: str) -> Tensor:
    """A node even where the dtype stays, as Burn's backends cast.

    Raises:
        DtypeError: a dtype that a tensor cannot have.
    """
    return unary(CAST, x, x.device.backend.checked_dtype(dtype))
