"""Single elements and vectors by their indices: compute bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import (
    INDICES_KEPT,
    along_dim,
    checked_indices,
    of_vectors,
    positive_dim,
    put_at,
    take_at,
    whole_numbers,
)
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound

Params = Any
"""(dim, indices) of gather and scatter; (None, index vectors) of the nd forms."""


def positions_of(xp: Any, whole: tuple[int, ...], params: Params) -> Any:
    """The flat positions in an array of shape `whole` that the indices stand for."""
    dim, indices = params[:2]
    if dim is None:
        return of_vectors(xp, whole, indices)
    return along_dim(xp, whole, indices, dim, indices.shape)


def taken_shape(whole: tuple[int, ...], params: Params) -> tuple[int, ...]:
    """The shape of what the indices take from an array of shape `whole`."""
    dim, indices = params[:2]
    if dim is None:
        return (*indices.shape[:-1], *whole[indices.shape[-1] :]) or (1,)
    return tuple(indices.shape)


def gather_at(xp: Any, x: Any, params: Params) -> Any:
    """The elements of x at the indices."""
    return take_at(xp, x, positions_of(xp, x.shape, params), taken_shape(x.shape, params))


def _gather_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    whole = xp.zeros(step.state, grad)
    return put_at(xp, whole, positions_of(xp, step.state, step.params), grad, "add")


def _taking(name: str) -> Op:
    return Op(
        name,
        Bound.COMPUTE,
        1,
        forward=gather_at,
        backward=_gather_gradient,
        state=lambda xp, out, x, params: x.shape,
        flops=no_flop,
        note=INDICES_KEPT,
    )


GATHER = _taking("gather")
GATHER_ND = _taking("gather_nd")


def indices_along(x: Tensor, dim: int, indices: Any, name: str) -> tuple[int, Any]:
    """The dim from the front, and `indices` along it as the backend's array.

    Raises:
        ShapeError: indices that do not fit x.
    """
    axis = positive_dim(x, dim)
    array = checked_indices(x, indices, x.shape[axis], name)
    others = [(a, b) for i, (a, b) in enumerate(zip(array.shape, x.shape)) if i != axis]
    if len(array.shape) != len(x.shape) or any(a > b for a, b in others):
        raise ShapeError(
            f"`{name}` cannot use indices of shape {list(array.shape)} along dim {axis} of shape "
            f"{list(x.shape)}",
            "indices have the tensor's rank, and are not larger in any other dim",
        )
    return axis, array


def index_vectors(x: Tensor, indices: Any, name: str) -> tuple[None, Any]:
    """None in place of a dim, and vectors of indices as the backend's array.

    Raises:
        ShapeError: vectors that do not fit x.
    """
    namespace = x.device.namespace
    array = whole_numbers(x, indices, name)
    depth = array.shape[-1]
    if depth > len(x.shape):
        raise ShapeError(f"`{name}` has index vectors of {depth} for shape {list(x.shape)}")
    for axis in range(depth):
        column = namespace.take_slices(array, (..., slice(axis, axis + 1)))
        checked_indices(x, column, x.shape[axis], name)
    return None, array


@operation()
def gather(x: Tensor, dim: int, indices: Any) -> Tensor:
    """The element at each index along `dim`, in the shape of `indices`."""
    return unary(GATHER, x, indices_along(x, dim, indices, "gather"))


@operation()
def gather_nd(x: Tensor, indices: Any) -> Tensor:
    """The element or slice that each vector of indices (the last dim) selects."""
    return unary(GATHER_ND, x, index_vectors(x, indices, "gather_nd"))
