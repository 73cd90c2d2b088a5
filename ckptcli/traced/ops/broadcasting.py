"""Broadcasting, and sums, which are its gradient."""

from __future__ import annotations

from ckptcli.traced.node import Shape
from ckptcli.traced.op import Op
from ckptcli.traced.ops.reshaping import reshape
from ckptcli.traced.tensor import Tensor, apply, traced_op


def broadcast_shape(lhs: Shape, rhs: Shape) -> Shape:
    """The shape that both broadcast to.

    Raises:
        ValueError: there is none.
    """
    if lhs == rhs:
        return lhs
    rank = max(len(lhs), len(rhs))
    left, right = ((1,) * (rank - len(shape)) + shape for shape in (lhs, rhs))
    if any(a != b and 1 not in (a, b) for a, b in zip(left, right)):
        raise ValueError("they do not broadcast")
    return tuple(b if a == 1 else a for a, b in zip(left, right))


def _checked_target(shape: Shape, target: Shape) -> Shape:
    if broadcast_shape(shape, target) != target:
        raise ValueError(f"they do not broadcast to {list(target)}")
    return target


def _summed(shape: Shape, dim: int) -> Shape:
    if not 0 <= dim < len(shape):
        raise ValueError(f"it has no axis {dim}")
    return (*shape[:dim], 1, *shape[dim + 1 :])


BROADCAST = Op(
    "broadcast_to",
    forward=lambda xp, x, target: xp.broadcast_to(x, target),
    shape=_checked_target,
    vjp=lambda g, out, x, target: (sum_to(g, x.shape),),
)
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


@traced_op()
def broadcast_to(x: Tensor, shape: Shape) -> Tensor:
    """The same values in a larger shape."""
    return x if x.shape == tuple(shape) else apply(BROADCAST, (x,), (tuple(shape),))


@traced_op("sum")
def total(x: Tensor) -> Tensor:
    """The sum of all elements, shape (1,)."""
    return apply(SUM, (x,))


@traced_op()
def sum_dim(x: Tensor, dim: int) -> Tensor:
    """The sum over one axis from 0, which stays with size 1."""
    return apply(SUM_DIM, (x,), (dim,))


def sum_to(x: Tensor, shape: Shape) -> Tensor:
    """The sum over the axes along which `shape` was broadcast to the shape of `x`."""
    if x.shape == shape:
        return x
    if shape == (1,):
        return total(x)
    rank = len(x.shape)
    padded = (1,) * (rank - len(shape)) + shape
    for dim in range(rank):
        if padded[dim] == 1 != x.shape[dim]:
            x = sum_dim(x, dim)
    return reshape(x, shape)
