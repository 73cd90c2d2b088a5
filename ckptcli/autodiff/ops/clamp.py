"""Limits, made of mask_fill: compute bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.numbers import number
from ckptcli.autodiff.ops.mask import MASK_FILL
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor


@operation()
def clamp_min(x: Tensor, c: float) -> Tensor:
    """`c` where x is below it, x elsewhere."""
    limit = number(c, "clamp_min")
    return unary(MASK_FILL, x, (x.device.namespace.less(x.value, limit), limit))


@operation()
def clamp_max(x: Tensor, c: float) -> Tensor:
    """`c` where x is above it, x elsewhere."""
    limit = number(c, "clamp_max")
    return unary(MASK_FILL, x, (x.device.namespace.greater(x.value, limit), limit))


@operation()
def clamp(x: Tensor, min: float, max: float) -> Tensor:
    """x limited to [min, max]: clamp_max, then clamp_min."""
    return clamp_min(clamp_max(x, max), min)
