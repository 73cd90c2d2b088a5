"""Sums; their gradient is broadcast."""

from __future__ import annotations

from ckptcli.traced.node import Shape
from ckptcli.traced.op import Op
from ckptcli.traced.tensor import Tensor, apply, traced_op


def _summed(shape: Shape, dim: int) -> Shape:
    if not 0 <= dim < len(shape):
        raise ValueError(f"it has no axis {dim}")
    return (*shape[:dim], 1, *shape[dim + 1 :])


SUM = Op(
    "sum",
    forward=lambda xp, x: xp.sum_all(x),
    shape=lambda shape: (1,),
    vjp=lambda g, out, x: (g.broadcast_to(x.shape),),
)
SUM_DIM = Op(
    "sum_dim",
    forward=lambda xp, x, dim: xp.sum_dim(x, dim),
    shape=_summed,
    vjp=lambda g, out, x, dim: (g.broadcast_to(x.shape),),
)


@traced_op("sum")
def total(x: Tensor) -> Tensor:
    """The sum of all elements, shape (1,)."""
    return apply(SUM, (x,))


@traced_op()
def sum_dim(x: Tensor, dim: int) -> Tensor:
    """The sum over one axis from 0, which stays with size 1."""
    return apply(SUM_DIM, (x,), (dim,))
