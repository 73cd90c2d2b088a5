"""Ops that move or choose elements and compute nothing."""

from __future__ import annotations

import math
from typing import Any

from ckptcli.traced.node import Shape
from ckptcli.traced.op import Op
from ckptcli.traced.tensor import Tensor, apply, traced_op


def _reshaped(shape: Shape, target: Shape) -> Shape:
    if math.prod(shape) != math.prod(target):
        raise ValueError(f"it has no {list(target)} elements")
    return target


def _permuted(shape: Shape, axes: tuple[int, ...]) -> Shape:
    if sorted(axes) != list(range(len(shape))):
        raise ValueError(f"{list(axes)} is no order of its axes")
    return tuple(shape[axis] for axis in axes)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def _sliced(shape: Shape, slices: tuple[slice, ...]) -> Shape:
    if len(slices) != len(shape):
        raise ValueError(f"it has {len(shape)} axes, the slices {len(slices)}")
    return tuple(len(range(*part.indices(size))) for part, size in zip(slices, shape))


def _padded(shape: Shape, target: Shape, slices: tuple[slice, ...]) -> Shape:
    if _sliced(target, slices) != shape:
        raise ValueError(f"it does not fit into slices of {list(target)}")
    return target


RESHAPE = Op(
    "reshape",
    forward=lambda xp, x, target: xp.reshape(x, target),
    shape=_reshaped,
    vjp=lambda g, out, x, target: (g.reshape(x.shape),),
)
PERMUTE = Op(
    "permute",
    forward=lambda xp, x, axes: xp.permute_dims(x, axes),
    shape=_permuted,
    vjp=lambda g, out, x, axes: (g.permute(_inverse(axes)),),
)
SLICE = Op(
    "slice",
    forward=lambda xp, x, slices: xp.take_slices(x, slices),
    shape=_sliced,
    vjp=lambda g, out, x, slices: (put_slices(g, x.shape, slices),),
)
PUT_SLICES = Op(
    "put_slices",
    forward=lambda xp, x, target, slices: xp.put_slices(target, slices, x),
    shape=_padded,
    vjp=lambda g, out, x, target, slices: (apply(SLICE, (g,), (slices,)),),
)


@traced_op()
def reshape(x: Tensor, shape: Shape) -> Tensor:
    """Another shape of the same size."""
    return x if x.shape == tuple(shape) else apply(RESHAPE, (x,), (tuple(shape),))


@traced_op()
def permute(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order."""
    return apply(PERMUTE, (x,), (tuple(axes),))


@traced_op()
def transpose(x: Tensor) -> Tensor:
    """The last two axes swapped."""
    rank = len(x.shape)
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))


@traced_op()
def __getitem__(x: Tensor, slices: slice | tuple[slice, ...]) -> Tensor:
    """The elements at slices of the first axes."""
    parts: tuple[Any, ...] = slices if isinstance(slices, tuple) else (slices,)
    rest = (slice(None),) * (len(x.shape) - len(parts))
    return apply(SLICE, (x,), ((*parts, *rest),))


def put_slices(x: Tensor, shape: Shape, slices: tuple[slice, ...]) -> Tensor:
    """Zeros of `shape` with the elements of x at slices."""
    return apply(PUT_SLICES, (x,), (shape, slices))


def diagonal(x: Tensor) -> Tensor:
    """The diagonal of a square matrix."""
    size = x.shape[0]
    return reshape(x, (size * size,))[:: size + 1]


def diagonal_matrix(x: Tensor) -> Tensor:
    """A square matrix with the elements of a vector on its diagonal."""
    (size,) = x.shape
    flat = put_slices(x, (size * size,), (slice(None, None, size + 1),))
    return reshape(flat, (size, size))
