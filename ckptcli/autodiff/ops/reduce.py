"""Reductions: compute bound. A full reduction has shape (1,); a reduced dim stays with size 1.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs` and `maxmin.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Flow, Op, one_flop_an_input
from ckptcli.autodiff.ops.shape import positive_dim
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def _shape(xp: Any, x: Any, params: Any) -> Any:
    return x.shape


def _sum_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.broadcast_to(grad, step.state)


def _mean_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    count = 1
    for size in step.state:
        count *= size
    return xp.broadcast_to(xp.divide(grad, count), step.state)


def _mean_dim_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.broadcast_to(xp.divide(grad, step.state[step.params]), step.state)


def _mean(xp: Any, x: Any, _: Any) -> Any:
    return xp.divide(xp.sum_all(x), x.size)


def _mean_dim(xp: Any, x: Any, dim: int) -> Any:
    return xp.divide(xp.sum_dim(x, dim), x.shape[dim])


def _max_dim_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    shape, indices = step.state
    return xp.put_along_dim(shape, indices, grad, step.params)


def _max_dim_state(xp: Any, x: Any, dim: int) -> Any:
    return x.shape, xp.argmax(x, dim)


SUM = Op(
    "sum",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, _: xp.sum_all(x),
    backward=_sum_gradient,
    state=_shape,
    flow=Flow.SHARED,
    flops=one_flop_an_input,
)
MEAN = Op(
    "mean",
    Bound.COMPUTE,
    1,
    forward=_mean,
    backward=_mean_gradient,
    state=_shape,
    flow=Flow.SHARED,
    flops=one_flop_an_input,
)
SUM_DIM = Op(
    "sum_dim",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.sum_dim(x, dim),
    backward=_sum_gradient,
    state=_shape,
    flow=Flow.SHARED,
    flops=one_flop_an_input,
)
MEAN_DIM = Op(
    "mean_dim",
    Bound.COMPUTE,
    1,
    forward=_mean_dim,
    backward=_mean_dim_gradient,
    state=_shape,
    flow=Flow.SHARED,
    flops=one_flop_an_input,
)
MAX_DIM = Op(
    "max_dim",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.max_dim(x, dim),
    backward=_max_dim_gradient,
    state=_max_dim_state,
    flops=one_flop_an_input,
)


@operation()
def sum(x: Tensor) -> Tensor:
    """The sum of all elements, shape (1,)."""
    return unary(SUM, x)


@operation()
def mean(x: Tensor) -> Tensor:
    """The mean of all elements, shape (1,)."""
    return unary(MEAN, x)


@operation()
def sum_dim(x: Tensor, dim: int) -> Tensor:
    """The sum over `dim`, which stays with size 1."""
    return unary(SUM_DIM, x, positive_dim(x, dim))


@operation()
def mean_dim(x: Tensor, dim: int) -> Tensor:
    """The mean over `dim`, which stays with size 1."""
    return unary(MEAN_DIM, x, positive_dim(x, dim))


@operation()
def max_dim(x: Tensor, dim: int) -> Tensor:
    """The maximum over `dim`, which stays with size 1; the gradient goes to the first maximum."""
    return unary(MAX_DIM, x, positive_dim(x, dim))
