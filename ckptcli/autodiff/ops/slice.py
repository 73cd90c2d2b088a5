"""A part by ranges, one for each dim, and putting it back: memory bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`, `burn-tensor/src/tensor/api/base.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import many, unary
from ckptcli.autodiff.op import LEFT_TRACKED, RIGHT_TRACKED, Flow, Op, input_shape, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _slice_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.put_slices(step.state, step.params, grad)


def _slice_assign(xp: Any, x: Any, values: Any, slices: tuple[slice, ...]) -> Any:
    hole = xp.take_slices(x, slices)
    if hole.shape != values.shape:
        raise ValueError(f"values of shape {list(hole.shape)} are needed")
    return xp.with_slices(x, slices, values)


def _slice_assign_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x_grad = values_grad = None
    values_shape, slices = step.state, step.params
    if step.mask & LEFT_TRACKED:
        x_grad = xp.with_slices(grad, slices, xp.zeros(values_shape, grad))
    if step.mask & RIGHT_TRACKED:
        values_grad = xp.take_slices(grad, slices)
    return x_grad, values_grad


SLICE = Op(
    "slice",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, slices: xp.take_slices(x, slices),
    backward=_slice_gradient,
    state=input_shape,
    flops=no_flop,
    is_view=True,
)
SLICE_ASSIGN = Op(
    "slice_assign",
    Bound.MEMORY,
    2,
    forward=_slice_assign,
    backward=_slice_assign_gradient,
    state=lambda xp, out, x, values, slices: values.shape,
    flow=Flow.PASSED,
    flops=no_flop,
)


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
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` elements from `start` along `dim`.

    Raises:
        ShapeError: they are not all there.
    """
    axis = positive_dim(x, dim)
    if start < 0 or length < 0 or start + length > x.shape[axis]:
        raise ShapeError(
            f"`narrow` cannot take {length} from {start} along dim {axis} of {list(x.shape)}"
        )
    return unary(SLICE, x, ((slice(None),) * axis) + (slice(start, start + length),))


@method()
def chunk(x: Tensor, chunks: int, dim: int) -> list[Tensor]:
    """At most `chunks` pieces along `dim`, each a slice; the last may be shorter.

    Raises:
        ShapeError: `chunks` is not positive.
    """
    axis = positive_dim(x, dim)
    if chunks < 1:
        raise ShapeError(f"`chunk` cannot give {chunks} pieces", "ask for 1 or more")
    size = x.shape[axis]
    length = max(1, math.ceil(size / chunks))
    starts: Sequence[int] = range(0, size, length)
    return [narrow(x, axis, start, min(length, size - start)) for start in starts]


@operation()
def slice_assign(x: Tensor, ranges: Sequence[Any], values: Tensor) -> Tensor:
    """x with a part, given as for `slice` or by Python slices, replaced by `values`."""
    parts = [part if isinstance(part, slice) else slice(*part) for part in ranges]
    return many(SLICE_ASSIGN, [x, values], slices_of(x, parts))
