"""A backend that computes shapes alone, to check a program before anything is allocated.

Every array has one element in memory and strides 0, whatever its shape. Functions that make a view
are NumPy's own; one that this module does not know is taken to be element by element, with
broadcasting, as almost all are.

Invariant: an op that this backend takes gives the shape that the NumPy backend gives; one that the
NumPy backend refuses for its operands' shapes is refused here with ValueError too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ckptcli.backends import numpy_namespace
from ckptcli.backends.base import Array, Namespace

_AS_THEY_ARE = {
    "asbool",
    "broadcast_shapes",
    "broadcast_to",
    "matrix_transpose",
    "permute_dims",
    "reshape",
    "storage_id",
    "storage_of",
    "swap_dims",
    "take_slices",
}
"""Functions of the NumPy namespace that allocate nothing of the size of an operand."""


def filled(shape: Sequence[int]) -> Any:
    """An array of this shape that takes the memory of one element, which it shares with none."""
    return np.broadcast_to(np.zeros(()), tuple(shape))


class ShapeNamespace:
    """The functions that ops call, on shapes."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(numpy_namespace, name)
        return function if name in _AS_THEY_ARE else _element_by_element

    def matmul(self, lhs: Array, rhs: Array) -> Any:
        """The shape of a matrix product over the last two axes."""
        if lhs.ndim < 2 or rhs.ndim < 2:
            raise ValueError("a matrix product needs operands of rank 2 or more")
        if lhs.shape[-1] != rhs.shape[-2]:
            raise ValueError(f"{lhs.shape[-1]} columns do not fit {rhs.shape[-2]} rows")
        batch = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
        return filled((*batch, lhs.shape[-2], rhs.shape[-1]))

    def concat(self, arrays: Sequence[Any], dim: int) -> Any:
        """The shape of arrays joined along one axis."""
        none_of_it = (slice(None),) * dim + (slice(0, 0),)
        joined = np.concatenate([array[none_of_it] for array in arrays], axis=dim)
        length = sum(array.shape[dim] for array in arrays)
        return filled((*joined.shape[:dim], length, *joined.shape[dim + 1 :]))

    def sum_all(self, x: Array) -> Any:
        """Shape (1,)."""
        return filled((1,))

    def sum_dim(self, x: Array, dim: int) -> Any:
        """The shape with one axis of size 1."""
        return filled((*x.shape[:dim], 1, *x.shape[dim + 1 :]))

    def max_dim(self, x: Array, dim: int) -> Any:
        """The same, but an empty axis has no maximum."""
        if x.shape[dim] == 0:
            raise ValueError("an empty dim has no maximum")
        return self.sum_dim(x, dim)

    argmax = max_dim


class ShapeBackend:
    """Arrays that have a shape and no content, all float64."""

    name = "shapes"
    label = "Shapes"

    def __init__(self) -> None:
        self.namespace: Namespace = ShapeNamespace()

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        array: Array = filled(np.shape(data) or (1,))
        return array

    def to_numpy(self, array: Array) -> Any:
        return array

    def quiet(self) -> AbstractContextManager[object]:
        return nullcontext()


def _element_by_element(*operands: Any) -> Any:
    return filled(np.broadcast_shapes(*[getattr(x, "shape", ()) for x in operands]))
