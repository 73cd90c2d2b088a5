"""The elements at slices, putting them back, and diagonals, which are slices of a flat matrix."""

from __future__ import annotations

from typing import Any

from ckptcli.traced.node import Shape
from ckptcli.traced.op import Op
from ckptcli.traced.ops.reshape import reshape
from ckptcli.traced.tensor import Tensor, apply, traced_op


def _sliced(shape: Shape, slices: tuple[slice, ...]) -> Shape:
    if len(slices) != len(shape):
        raise ValueError(f"it has {len(shape)} axes, the slices {len(slices)}")
    return tuple(len(range(*part.indices(size))) for part, size in zip(slices, shape))


def _padded(shape: Shape, target: Shape, slices: tuple[slice, ...]) -> Shape:
    if _sliced(target, slices) != shape:
        raise ValueError(f"it does not fit into slices of {list(target)}")
    return target


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
