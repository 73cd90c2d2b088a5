"""Matrix products, and contractions composed of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ckptcli.traced.node import Shape
from ckptcli.traced.op import Op
from ckptcli.traced.ops.permute import permute
from ckptcli.traced.ops.reshape import reshape
from ckptcli.traced.tensor import Tensor, apply, traced_op


def _product_shape(lhs: Shape, rhs: Shape) -> Shape:
    if len(lhs) != 2 or len(rhs) != 2 or lhs[1] != rhs[0]:
        raise ValueError("a matrix product needs (n, k) and (k, m)")
    return lhs[0], rhs[1]


MATMUL = Op(
    "matmul",
    forward=lambda xp, a, b: xp.matmul(a, b),
    shape=_product_shape,
    vjp=lambda g, out, a, b: (g @ b.transpose(), a.transpose() @ g),
)


@traced_op("__matmul__")
def matmul(lhs: Tensor, rhs: Tensor) -> Tensor:
    """The product of two matrices."""
    return apply(MATMUL, (lhs, rhs))


def tensordot(lhs: Tensor, rhs: Tensor, axes: tuple[Sequence[int], Sequence[int]]) -> Tensor:
    """The sum over pairs of axes of two tensors; the other axes follow, the left ones first.

    Composed of a matrix product and views, so it needs no gradient of its own.

    Raises:
        ShapeError: paired axes of different sizes.
    """
    left, right = (tuple(part) for part in axes)
    free_left = [axis for axis in range(len(lhs.shape)) if axis not in left]
    free_right = [axis for axis in range(len(rhs.shape)) if axis not in right]
    rows = [lhs.shape[axis] for axis in free_left]
    columns = [rhs.shape[axis] for axis in free_right]
    a = reshape(
        permute(lhs, (*free_left, *left)),
        (math.prod(rows), math.prod(lhs.shape[axis] for axis in left)),
    )
    b = reshape(
        permute(rhs, (*right, *free_right)),
        (math.prod(rhs.shape[axis] for axis in right), math.prod(columns)),
    )
    return reshape(matmul(a, b), (*rows, *columns))
