"""The dims, or the elements along them, in another order: memory bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Flow, Op, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def _swap_dims(xp: Any, x: Any, dims: tuple[int, int]) -> Any:
    return xp.swap_dims(x, *dims)


def _swap_dims_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.swap_dims(grad, *step.params)


def _permute_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    axes = step.params
    return xp.permute_dims(grad, tuple(axes.index(axis) for axis in range(len(axes))))


SWAP_DIMS = Op(
    "swap_dims",
    Bound.MEMORY,
    1,
    forward=_swap_dims,
    backward=_swap_dims_gradient,
    flow=Flow.PASSED,
    flops=no_flop,
    is_view=True,
)
PERMUTE = Op(
    "permute",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, axes: xp.permute_dims(x, axes),
    backward=_permute_gradient,
    flow=Flow.PASSED,
    flops=no_flop,
    is_view=True,
)
FLIP = Op(
    "flip",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, axes: xp.flip(x, axes),
    backward=lambda xp, grad, owned, kept, step: xp.flip(grad, step.params),
    flow=Flow.PASSED,
    flops=no_flop,
)


@operation()
def swap_dims(x: Tensor, dim1: int, dim2: int) -> Tensor:
    """Two dims swapped; the tensor itself where they are the same."""
    dims = positive_dim(x, dim1), positive_dim(x, dim2)
    return x if dims[0] == dims[1] else unary(SWAP_DIMS, x, dims)


@operation()
def transpose(x: Tensor) -> Tensor:
    """The last two dims swapped."""
    return swap_dims(x, -2, -1)


@operation()
def permute(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The dims in another order; the tensor itself where the order is the same."""
    order = tuple(positive_dim(x, axis) for axis in axes)
    if order == tuple(range(len(x.shape))):
        return x
    return unary(PERMUTE, x, order)


@operation()
def flip(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The order along each of `axes` reversed."""
    return unary(FLIP, x, tuple(positive_dim(x, axis) for axis in axes))
