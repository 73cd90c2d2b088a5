"""The axes in another order."""

from __future__ import annotations

from ckptcli.traced.node import Shape
from ckptcli.traced.op import Op
from ckptcli.traced.tensor import Tensor, apply, traced_op


def _permuted(shape: Shape, axes: tuple[int, ...]) -> Shape:
    if sorted(axes) != list(range(len(shape))):
        raise ValueError(f"{list(axes)} is no order of its axes")
    return tuple(shape[axis] for axis in axes)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


PERMUTE = Op(
    "permute",
    forward=lambda xp, x, axes: xp.permute_dims(x, axes),
    shape=_permuted,
    vjp=lambda g, out, x, axes: (g.permute(_inverse(axes)),),
)


@traced_op()
def permute(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order."""
    return apply(PERMUTE, (x,), (tuple(axes),))


@traced_op()
def transpose(x: Tensor) -> Tensor:
    """The last two axes swapped."""
    rank = len(x.shape)
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))
