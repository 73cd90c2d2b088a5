"""Views made of reshape and slice.

Source: Burn 0.22.1, `burn-tensor/src/tensor/api/base.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.ops.shape import RESHAPE, SLICE, positive_dim, reshape
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.errors import ShapeError


@operation()
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """A new dim of size 1 before `dim`; -1 puts it last."""
    rank = len(x.shape) + 1
    if not -rank <= dim < rank:
        raise ShapeError(f"`unsqueeze` cannot add dim {dim} to shape {list(x.shape)}")
    shape = list(x.shape)
    shape.insert(dim % rank, 1)
    return unary(RESHAPE, x, tuple(shape))


@operation()
def squeeze(x: Tensor, dim: int) -> Tensor:
    """Without `dim`, which has size 1; the last one stays.

    Raises:
        ShapeError: the dim has another size.
    """
    axis = positive_dim(x, dim)
    if x.shape[axis] != 1:
        raise ShapeError(f"`squeeze` cannot drop dim {axis} of shape {list(x.shape)}")
    return reshape(x, [*x.shape[:axis], *x.shape[axis + 1 :]])


@operation()
def flatten(x: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """The dims from `start_dim` to `end_dim`, both included, as one."""
    start, end = positive_dim(x, start_dim), positive_dim(x, end_dim)
    if start > end:
        raise ShapeError(f"`flatten` got start_dim {start} after end_dim {end}")
    merged = math.prod(x.shape[start : end + 1])
    return unary(RESHAPE, x, (*x.shape[:start], merged, *x.shape[end + 1 :]))


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
    """At most `chunks` pieces along `dim`, each a slice; the last may be shorter."""
    axis = positive_dim(x, dim)
    size = x.shape[axis]
    length = max(1, math.ceil(size / chunks))
    starts: Sequence[int] = range(0, size, length)
    return [narrow(x, axis, start, min(length, size - start)) for start in starts]
