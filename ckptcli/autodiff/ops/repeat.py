"""Elements that are there several times, as a view or copied: memory bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.broadcasting import sum_to
from ckptcli.autodiff.op import Flow, Op, input_shape, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import checked_sizes, positive_dim
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _expand_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return sum_to(xp, grad, step.state)


def _repeat_dim(xp: Any, x: Any, params: tuple[int, int]) -> Any:
    dim, times = params
    return xp.concat([x] * times, dim)


def _repeat_dim_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    dim, times = step.params
    shape = step.state
    split = (*shape[:dim], times, *shape[dim:])
    return xp.reshape(xp.sum_dim(xp.reshape(grad, split), dim), shape)


EXPAND = Op(
    "expand",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, shape: xp.broadcast_to(x, shape),
    backward=_expand_gradient,
    state=input_shape,
    flow=Flow.PASSED,
    flops=no_flop,
    is_view=True,
)
REPEAT_DIM = Op(
    "repeat_dim",
    Bound.MEMORY,
    1,
    forward=_repeat_dim,
    backward=_repeat_dim_gradient,
    state=input_shape,
    flops=no_flop,
)


@operation()
def expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Broadcast to `shape`; -1 keeps a size.

    Raises:
        ShapeError: the tensor cannot be broadcast to it.
    """
    sizes = list(shape)
    added = len(sizes) - len(x.shape)
    for position, size in enumerate(sizes):
        if size == -1:
            if position < added:
                raise ShapeError(f"`expand` cannot keep new dim {position} of {sizes}")
            sizes[position] = x.shape[position - added]
    return unary(EXPAND, x, checked_sizes(sizes, "expand"))


@operation()
def repeat_dim(x: Tensor, dim: int, times: int) -> Tensor:
    """x after itself, `times` times along `dim`."""
    if times < 1:
        raise ShapeError(f"`repeat_dim` cannot repeat {times} times")
    return unary(REPEAT_DIM, x, (positive_dim(x, dim), times))
