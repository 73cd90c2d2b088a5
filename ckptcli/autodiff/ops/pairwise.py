"""Functions of two tensors beyond arithmetic, broadcast. All memory bound but hypot.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.op import KEEPS_BOTH, KEEPS_DIVISION, LEFT_TRACKED, RIGHT_TRACKED, Flow, Op
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def _remainder_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """The divisor is retrieved even where only the dividend is tracked, as in Burn."""
    rhs = kept.pop()
    rhs_grad = None
    if step.mask & RIGHT_TRACKED:
        rhs_grad = xp.floor(xp.divide(kept.pop(), rhs))
        rhs_grad = xp.multiply(grad, xp.negative(rhs_grad, rhs_grad))
    return grad if step.mask & LEFT_TRACKED else None, rhs_grad


def _powf_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    rhs, lhs = kept.pop(), kept.pop()
    lhs_grad = rhs_grad = None
    if step.mask & LEFT_TRACKED:
        slope = xp.multiply(rhs, xp.pow(lhs, xp.subtract(rhs, 1.0)))
        lhs_grad = xp.multiply(grad, slope)
    if step.mask & RIGHT_TRACKED:
        slope = xp.multiply(xp.pow(lhs, rhs), xp.log(lhs))
        rhs_grad = xp.multiply(grad, slope)
    return lhs_grad, rhs_grad


def _atan2_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x, y = kept.pop(), kept.pop()
    scale = xp.divide(grad, xp.add(xp.square(x), xp.square(y)))
    return (
        xp.multiply(scale, x) if step.mask & LEFT_TRACKED else None,
        xp.multiply(scale, xp.negative(y)) if step.mask & RIGHT_TRACKED else None,
    )


def _hypot_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    rhs, lhs = kept.pop(), kept.pop()
    scale = xp.divide(grad, xp.hypot(lhs, rhs))
    return (
        xp.multiply(scale, lhs) if step.mask & LEFT_TRACKED else None,
        xp.multiply(scale, rhs) if step.mask & RIGHT_TRACKED else None,
    )


REMAINDER = Op(
    "remainder",
    Bound.MEMORY,
    2,
    forward=lambda xp, lhs, rhs, _: xp.remainder(lhs, rhs),
    backward=_remainder_gradient,
    keeps=KEEPS_DIVISION,
    broadcasts=True,
    flow=Flow.PASSED,
)
REMAINDER_SCALAR = Op(
    "remainder_scalar",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, scalar: xp.remainder(x, scalar),
    backward=lambda xp, grad, owned, kept, step: grad,
    flow=Flow.PASSED,
)
POWF = Op(
    "powf",
    Bound.MEMORY,
    2,
    forward=lambda xp, lhs, rhs, _: xp.pow(lhs, rhs),
    backward=_powf_gradient,
    keeps=KEEPS_BOTH,
    broadcasts=True,
)
ATAN2 = Op(
    "atan2",
    Bound.MEMORY,
    2,
    forward=lambda xp, y, x, _: xp.atan2(y, x),
    backward=_atan2_gradient,
    keeps=KEEPS_BOTH,
    broadcasts=True,
)
HYPOT = Op(
    "hypot",
    Bound.COMPUTE,
    2,
    forward=lambda xp, lhs, rhs, _: xp.hypot(lhs, rhs),
    backward=_hypot_gradient,
    keeps=KEEPS_BOTH,
    broadcasts=True,
)


@operation()
def remainder(lhs: Tensor, rhs: Tensor) -> Tensor:
    """What is left of lhs after whole multiples of rhs, with the sign of rhs."""
    return binary(REMAINDER, lhs, rhs)


@operation()
def remainder_scalar(x: Tensor, c: float) -> Tensor:
    """What is left of x after whole multiples of c, with the sign of c."""
    return unary(REMAINDER_SCALAR, x, float(c))


@operation("powi")
def powf(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Lhs ** rhs, element by element; one node whatever the exponents are."""
    return binary(POWF, lhs, rhs)


@operation()
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the point (x, y)."""
    return binary(ATAN2, y, x)


@operation()
def hypot(lhs: Tensor, rhs: Tensor) -> Tensor:
    """sqrt(lhs**2 + rhs**2) without overflow."""
    return binary(HYPOT, lhs, rhs)
