"""Choosing by a mask: compute bound. The mask is kept in the op's parameters.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.numbers import check_mask, number
from ckptcli.autodiff.op import LEFT_TRACKED, RIGHT_TRACKED, Op
from ckptcli.autodiff.ops.select import SELECT
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def _mask_where_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    mask = step.params
    return (
        xp.where(mask, 0.0, grad) if step.mask & LEFT_TRACKED else None,
        xp.where(mask, grad, 0.0) if step.mask & RIGHT_TRACKED else None,
    )


def _mask_where(xp: Any, x: Any, source: Any, mask: Any) -> Any:
    result = xp.where(mask, source, x)
    if result.shape != xp.broadcast_shapes(x.shape, source.shape):
        raise ValueError(f"a mask of shape {list(mask.shape)} is larger than both")
    return result


def _mask_fill(xp: Any, x: Any, params: tuple[Any, float]) -> Any:
    result = xp.where(params[0], params[1], x)
    if result.shape != x.shape:
        raise ValueError(f"a mask of shape {list(params[0].shape)} is larger")
    return result


def _mask_fill_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.where(step.params[0], 0.0, grad)


MASK_WHERE = Op(
    "mask_where",
    Bound.COMPUTE,
    2,
    forward=_mask_where,
    backward=_mask_where_gradient,
    broadcasts=True,
    note="the mask",
)
MASK_FILL = Op(
    "mask_fill",
    Bound.COMPUTE,
    1,
    forward=_mask_fill,
    backward=_mask_fill_gradient,
    note="the mask",
)


def _mask_of(x: Tensor, mask: Any, op: str) -> Any:
    """`mask` as the backend's array of x's rank; a flat list of x's size takes x's shape.

    Raises:
        OperandError: a single bool or number, or a tensor of numbers.
    """
    check_mask(mask, op)
    array = x.device.namespace.asbool(mask)
    if array.ndim == 1 and array.shape[0] == math.prod(x.shape):
        array = x.device.namespace.reshape(array, x.shape)
    return array


@operation()
def mask_where(x: Tensor, mask: Any, source: Tensor) -> Tensor:
    """`source` where the mask is true, x elsewhere."""
    return binary(MASK_WHERE, x, source, _mask_of(x, mask, "mask_where"))


@operation()
def mask_fill(x: Tensor, mask: Any, c: float) -> Tensor:
    """`c` where the mask is true, x elsewhere."""
    return unary(MASK_FILL, x, (_mask_of(x, mask, "mask_fill"), number(c, "mask_fill")))


@operation()
def mask_select(x: Tensor, mask: Any) -> Tensor:
    """The elements where the mask is true, rank 1: reshape, then select."""
    check_mask(mask, "mask_select")
    namespace = x.device.namespace
    flat = x.reshape([-1])
    where = namespace.broadcast_to(namespace.asbool(mask), x.shape)
    positions = namespace.true_positions(namespace.reshape(where, flat.shape))
    return unary(SELECT, flat, (0, positions))
