"""Dims and integer indices, and the places in flat memory that they stand for.

Indexing ops gather with `take` and put with `scatter` over a flattened array, so that a backend has
to supply one function beyond the array API standard. Positions are computed by the namespace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError

Shape = tuple[int, ...]

INDICES_KEPT = "the integer indices"
"""What an op that takes indices keeps, in words."""


def positive_dim(x: Tensor, dim: int) -> int:
    """`dim` counted from the front.

    Raises:
        ShapeError: the tensor has no such dim.
    """
    rank = len(x.shape)
    if type(dim) is bool or not -rank <= dim < rank:
        raise ShapeError(f"dim {dim} of a tensor of shape {list(x.shape)} does not exist")
    return dim % rank


def checked_sizes(sizes: Sequence[int], what: str) -> Shape:
    """`sizes` as a shape.

    Raises:
        ShapeError: one of them is more than 63 bits.
    """
    if any(size >= 1 << 63 or size < -1 << 63 for size in sizes):
        raise ShapeError(f"`{what}` cannot give a size of more than 63 bits: {list(sizes)}")
    return tuple(sizes)


def checked_indices(x: Tensor, indices: Any, size: int, what: str) -> Any:
    """`indices` as the backend's integer array.

    Raises:
        ShapeError: one of them is negative, or `size` or more.
    """
    array = whole_numbers(x, indices, what)
    if not x.device.namespace.indices_within(array, size):
        raise ShapeError(f"`{what}` has an index outside of 0 to {size - 1}")
    return array


def whole_numbers(x: Tensor, numbers: Any, what: str) -> Any:
    """`numbers` as the backend's integer array.

    Raises:
        ShapeError: one of them is not whole, or more than 64 bits.
    """
    device = x.device
    errors: tuple[type[Exception], ...] = (*device.backend.operand_errors, TypeError)
    try:
        return device.namespace.asindices(numbers)
    except errors as error:
        raise ShapeError(f"`{what}` cannot use its indices: {error}") from error


def strides_of(shape: Shape) -> list[int]:
    """How far apart neighbours along each axis are in flat memory."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def along_dim(xp: Any, whole: Shape, indices: Any, dim: int, shape: Shape) -> Any:
    """The position in an array of shape `whole` of each element of one of `shape`.

    `indices` (broadcast to `shape`) replace the coordinate along `dim`.
    """
    positions = xp.zeros_indices((1,) * len(whole))
    for axis, stride in enumerate(strides_of(whole)):
        if axis == dim:
            coordinate = indices
        else:
            sizes = [1] * len(whole)
            sizes[axis] = shape[axis]
            coordinate = xp.reshape(xp.arange(shape[axis]), tuple(sizes))
        positions = xp.add(positions, xp.multiply(coordinate, stride))
    return positions


def of_vectors(xp: Any, whole: Shape, indices: Any) -> Any:
    """The positions of the slices that index vectors (the last axis) select, a row each."""
    depth = indices.shape[-1]
    rows = xp.reshape(indices, (math.prod(indices.shape[:-1]), depth))
    inner = math.prod(whole[depth:])
    positions = xp.reshape(xp.arange(inner), (1, inner))
    for axis, stride in enumerate(strides_of(whole)[:depth]):
        column = xp.take_slices(rows, (slice(None), slice(axis, axis + 1)))
        positions = xp.add(positions, xp.multiply(column, stride))
    return positions


def take_at(xp: Any, x: Any, positions: Any, shape: Shape) -> Any:
    """The elements of x at flat positions, in `shape`."""
    flat = xp.reshape(x, (math.prod(x.shape),))
    return xp.reshape(xp.take(flat, _flat(xp, positions), 0), shape)


def put_at(xp: Any, x: Any, positions: Any, values: Any, update: str) -> Any:
    """A copy of x with `values` at flat positions; `update` is add, assign, mul, min or max."""
    flat = xp.reshape(x, (math.prod(x.shape),))
    changed = xp.scatter(flat, _flat(xp, positions), _flat(xp, values), update)
    return xp.reshape(changed, x.shape)


def _flat(xp: Any, array: Any) -> Any:
    return xp.reshape(array, (math.prod(array.shape),))
