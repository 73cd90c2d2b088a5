"""Ops that change the view or move data: memory bound, but for cat, which Burn marks neither.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import many, unary
from ckptcli.autodiff.op import Flow, Op, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.reduction import sum_to
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def positive_dim(x: Tensor, dim: int) -> int:
    """`dim` counted from the front.

    Raises:
        ShapeError: the tensor has no such dim.
    """
    rank = len(x.shape)
    if not -rank <= dim < rank:
        raise ShapeError(f"dim {dim} of a tensor of shape {list(x.shape)} does not exist")
    return dim % rank


def _shape(xp: Any, out: Any, x: Any, params: Any) -> Any:
    return x.shape


def _swap_dims(xp: Any, x: Any, dims: tuple[int, int]) -> Any:
    return xp.swap_dims(x, *dims)


def _swap_dims_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.swap_dims(grad, *step.params)


def _permute_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    axes = step.params
    return xp.permute_dims(grad, tuple(axes.index(axis) for axis in range(len(axes))))


def _reshape_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.reshape(grad, step.state)


def _expand_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return sum_to(xp, grad, step.state)


def _slice_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.put_slices(step.state, step.params, grad)


def _cat_state(xp: Any, out: Any, *values_and_dim: Any) -> Any:
    *values, dim = values_and_dim
    return [value.shape[dim] for value in values]


def _cat(xp: Any, *values_and_dim: Any) -> Any:
    *values, dim = values_and_dim
    return xp.concat(values, dim)


def _cat_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    dim = step.params
    before = (slice(None),) * dim
    start = 0
    gradients = []
    for position, size in enumerate(step.state):
        piece = None
        if step.mask >> position & 1:
            piece = xp.take_slices(grad, (*before, slice(start, start + size)))
        gradients.append(piece)
        start += size
    return tuple(gradients)


SWAP_DIMS = Op(
    "swap_dims",
    Bound.MEMORY,
    1,
    forward=_swap_dims,
    backward=_swap_dims_gradient,
    flow=Flow.PASSED,
    flops=no_flop,
    is_view=True,
)
PERMUTE = Op(
    "permute",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, axes: xp.permute_dims(x, axes),
    backward=_permute_gradient,
    flow=Flow.PASSED,
    flops=no_flop,
    is_view=True,
)
RESHAPE = Op(
    "reshape",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, shape: xp.reshape(x, shape),
    backward=_reshape_gradient,
    state=_shape,
    flow=Flow.PASSED,
    flops=no_flop,
    is_view=True,
)
EXPAND = Op(
    "expand",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, shape: xp.broadcast_to(x, shape),
    backward=_expand_gradient,
    state=_shape,
    flow=Flow.PASSED,
    flops=no_flop,
    is_view=True,
)
SLICE = Op(
    "slice",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, slices: xp.take_slices(x, slices),
    backward=_slice_gradient,
    state=_shape,
    flops=no_flop,
    is_view=True,
)
CAT = Op(
    "cat",
    Bound.AMBIGUOUS,
    0,
    forward=_cat,
    backward=_cat_gradient,
    state=_cat_state,
    flow=Flow.PASSED,
    flops=no_flop,
    step_when_untracked=False,
)


@operation()
def swap_dims(x: Tensor, dim1: int, dim2: int) -> Tensor:
    """Two dims swapped; the tensor itself where they are the same."""
    dims = positive_dim(x, dim1), positive_dim(x, dim2)
    return x if dims[0] == dims[1] else unary(SWAP_DIMS, x, dims)


@operation()
def transpose(x: Tensor) -> Tensor:
    """The last two dims swapped."""
    return swap_dims(x, -2, -1)


@operation()
def permute(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The dims in another order; the tensor itself where the order is the same."""
    order = tuple(positive_dim(x, axis) for axis in axes)
    if order == tuple(range(len(x.shape))):
        return x
    return unary(PERMUTE, x, order)


@operation()
def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Another shape of the same size; one size may be -1.

    Raises:
        ShapeError: the sizes differ, or the shape has rank 0.
    """
    if not shape:
        raise ShapeError("`reshape` cannot give rank 0", "a scalar has shape [1]")
    return unary(RESHAPE, x, tuple(shape))


@operation()
def expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Broadcast to `shape`; -1 keeps a size.

    Raises:
        ShapeError: the tensor cannot be broadcast to it.
    """
    sizes = list(shape)
    added = len(sizes) - len(x.shape)
    for position, size in enumerate(sizes):
        if size == -1:
            if position < added:
                raise ShapeError(f"`expand` cannot keep new dim {position} of {sizes}")
            sizes[position] = x.shape[position - added]
    return unary(EXPAND, x, tuple(sizes))


@operation(name="slice")
def slice_dims(x: Tensor, ranges: Sequence[Sequence[int]]) -> Tensor:
    """The part given by [start, stop] or [start, stop, step] for each of the leading dims."""
    return slice_tensor(x, [slice(*bounds) for bounds in ranges])


@method("__getitem__")
def slice_tensor(x: Tensor, slices: slice | Sequence[slice]) -> Tensor:
    """The part given by Python slices; every dim stays.

    Raises:
        ShapeError: an index that is not a slice, or more slices than dims.
    """
    return unary(SLICE, x, slices_of(x, slices))


def slices_of(x: Tensor, slices: slice | Sequence[slice]) -> tuple[slice, ...]:
    """One slice for each of the leading dims.

    Raises:
        ShapeError: an index that is not a slice, or more slices than dims.
    """
    parts = tuple(slices) if isinstance(slices, Sequence) else (slices,)
    if len(parts) > len(x.shape) or not all(isinstance(part, slice) for part in parts):
        raise ShapeError(
            f"a tensor of shape {list(x.shape)} cannot be indexed by {slices!r}",
            "use a slice for each dim, `x[1:2, :]`",
        )
    return parts


@operation()
def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Tensors joined along `dim`.

    Raises:
        ShapeError: no tensor, or shapes that differ in another dim.
    """
    if not tensors:
        raise ShapeError("`cat` needs at least one tensor")
    return many(CAT, tensors, positive_dim(tensors[0], dim))
