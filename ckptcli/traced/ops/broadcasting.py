"""Broadcasting, and the sum that undoes it in a gradient."""

from __future__ import annotations

from ckptcli.traced.node import Shape
from ckptcli.traced.op import Op
from ckptcli.traced.ops.reduction import sum_dim, total
from ckptcli.traced.ops.reshape import reshape
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


BROADCAST = Op(
    "broadcast_to",
    forward=lambda xp, x, target: xp.broadcast_to(x, target),
    shape=_checked_target,
    vjp=lambda g, out, x, target: (sum_to(g, x.shape),),
)


@traced_op()
def broadcast_to(x: Tensor, shape: Shape) -> Tensor:
    """The same values in a larger shape."""
    return x if x.shape == tuple(shape) else apply(BROADCAST, (x,), (tuple(shape),))


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
