"""The same elements in another shape: memory bound. All are made of reshape.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`, `burn-tensor/src/tensor/api/base.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Flow, Op, input_shape, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import checked_sizes, positive_dim
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _reshape_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.reshape(grad, step.state)


RESHAPE = Op(
    "reshape",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, shape: xp.reshape(x, shape),
    backward=_reshape_gradient,
    state=input_shape,
    flow=Flow.PASSED,
    flops=no_flop,
    is_view=True,
)


@operation()
def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Another shape of the same size; one size may be -1.

    Raises:
        ShapeError: the sizes differ, or the shape has rank 0.
    """
    if not shape:
        raise ShapeError("`reshape` cannot give rank 0", "a scalar has shape [1]")
    return unary(RESHAPE, x, checked_sizes(shape, "reshape"))


@operation()
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """A new dim of size 1 before `dim`; -1 puts it last."""
    rank = len(x.shape) + 1
    if not -rank <= dim < rank:
        raise ShapeError(f"`unsqueeze` cannot add dim {dim} to shape {list(x.shape)}")
    shape = list(x.shape)
    shape.insert(dim % rank, 1)
    return unary(RESHAPE, x, tuple(shape))


@operation()
def squeeze(x: Tensor, dim: int) -> Tensor:
    """Without `dim`, which has size 1; the last one stays.

    Raises:
        ShapeError: the dim has another size.
    """
    axis = positive_dim(x, dim)
    if x.shape[axis] != 1:
        raise ShapeError(f"`squeeze` cannot drop dim {axis} of shape {list(x.shape)}")
    return reshape(x, [*x.shape[:axis], *x.shape[axis + 1 :]])


@operation()
def flatten(x: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """The dims from `start_dim` to `end_dim`, both included, as one."""
    start, end = positive_dim(x, start_dim), positive_dim(x, end_dim)
    if start > end:
        raise ShapeError(f"`flatten` got start_dim {start} after end_dim {end}")
    merged = math.prod(x.shape[start : end + 1])
    return unary(RESHAPE, x, (*x.shape[:start], merged, *x.shape[end + 1 :]))
