"""Arithmetic: tensor with tensor, tensor with scalar, sign and absolute value. All memory bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.numbers import number
from ckptcli.autodiff.op import (
    KEEPS_DIVISION,
    KEEPS_INPUT,
    KEEPS_OTHER,
    LEFT_TRACKED,
    RIGHT_TRACKED,
    Flow,
    Op,
    elementwise_op,
)
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def _add_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return (
        grad if step.mask & LEFT_TRACKED else None,
        grad if step.mask & RIGHT_TRACKED else None,
    )


def _sub_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    if step.mask == LEFT_TRACKED:
        return grad, None
    if step.mask == RIGHT_TRACKED:
        return None, xp.negative(grad, grad if owned else None)
    return grad, xp.negative(grad)


def _mul_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    out = grad if owned else None
    if step.mask == LEFT_TRACKED:
        return xp.multiply(grad, kept.pop(), out), None
    if step.mask == RIGHT_TRACKED:
        return None, xp.multiply(grad, kept.pop(), out)
    lhs_grad = xp.multiply(grad, kept.pop())
    return lhs_grad, xp.multiply(grad, kept.pop(), out)


def _div_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """-(lhs / rhs) / rhs: the divisor's square, which Burn takes, leaves the range much earlier."""
    rhs = kept.pop()
    lhs_grad = rhs_grad = None
    if step.mask & RIGHT_TRACKED:
        rhs_grad = xp.divide(kept.pop(), rhs)
        rhs_grad = xp.divide(rhs_grad, rhs, rhs_grad)
        rhs_grad = xp.multiply(grad, xp.negative(rhs_grad, rhs_grad))
    if step.mask & LEFT_TRACKED:
        lhs_grad = xp.divide(grad, rhs)
    return lhs_grad, rhs_grad


def _whole_quotient(xp: Any, lhs: Any, rhs: Any) -> Any:
    """The whole number of `rhs` that the remainder leaves out of `lhs`.

    lhs / rhs rounds, and its floor can be one more than what the remainder was taken with. A
    divisor that is infinite is left out -1 times where the signs differ.
    """
    left = xp.remainder(lhs, rhs)
    is_infinite = xp.equal(xp.abs(rhs), math.inf)
    finite = xp.where(is_infinite, 1.0, rhs)
    whole = xp.round(xp.subtract(xp.divide(lhs, finite), xp.divide(left, finite)))
    of_infinite = xp.floor(xp.multiply(xp.multiply(xp.sign(lhs), xp.sign(rhs)), 0.5))
    whole = xp.where(is_infinite, of_infinite, whole)
    return xp.where(xp.equal(left, left), whole, left)


def _remainder_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """The divisor is retrieved even where only the dividend is tracked, as in Burn."""
    rhs = kept.pop()
    rhs_grad = None
    if step.mask & RIGHT_TRACKED:
        rhs_grad = _whole_quotient(xp, kept.pop(), rhs)
        rhs_grad = xp.multiply(grad, xp.negative(rhs_grad, rhs_grad))
    return grad if step.mask & LEFT_TRACKED else None, rhs_grad


def _scale_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.multiply(grad, step.params, grad if owned else None)


def _pass_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return grad


def _recip_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """-(grad / x) / x: Burn's square of x leaves the range much earlier."""
    x = kept.pop()
    scale = xp.divide(grad, x, grad if owned else None)
    scale = xp.divide(scale, x, scale)
    return xp.negative(scale, scale)


def _sign_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """Burn's product with zero: nan where the gradient is not finite."""
    return xp.multiply(grad, 0.0, grad if owned else None)


ADD = Op(
    "add",
    Bound.MEMORY,
    2,
    forward=lambda xp, lhs, rhs, _: xp.add(lhs, rhs),
    backward=_add_gradient,
    broadcasts=True,
    flow=Flow.PASSED,
)
SUB = Op(
    "sub",
    Bound.MEMORY,
    2,
    forward=lambda xp, lhs, rhs, _: xp.subtract(lhs, rhs),
    backward=_sub_gradient,
    broadcasts=True,
    flow=Flow.PASSED,
)
MUL = Op(
    "mul",
    Bound.MEMORY,
    2,
    forward=lambda xp, lhs, rhs, _: xp.multiply(lhs, rhs),
    backward=_mul_gradient,
    keeps=KEEPS_OTHER,
    broadcasts=True,
)
DIV = Op(
    "div",
    Bound.MEMORY,
    2,
    forward=lambda xp, lhs, rhs, _: xp.divide(lhs, rhs),
    backward=_div_gradient,
    keeps=KEEPS_DIVISION,
    broadcasts=True,
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
ADD_SCALAR = Op(
    "add_scalar",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, scalar: xp.add(x, scalar),
    backward=_pass_gradient,
    flow=Flow.PASSED,
)
SUB_SCALAR = Op(
    "sub_scalar",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, scalar: xp.subtract(x, scalar),
    backward=_pass_gradient,
    flow=Flow.PASSED,
)
MUL_SCALAR = Op(
    "mul_scalar",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, scalar: xp.multiply(x, scalar),
    backward=_scale_gradient,
)
DIV_SCALAR = Op(
    "div_scalar",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, scalar: xp.divide(x, scalar),
    backward=lambda xp, grad, owned, kept, step: xp.divide(
        grad, step.params, grad if owned else None
    ),
)
REMAINDER_SCALAR = Op(
    "remainder_scalar",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, scalar: xp.remainder(x, scalar),
    backward=lambda xp, grad, owned, kept, step: grad,
    flow=Flow.PASSED,
)
NEG = Op(
    "neg",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, _: xp.negative(x),
    backward=lambda xp, grad, owned, kept, step: xp.negative(grad, grad if owned else None),
)
RECIP = Op(
    "recip",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, _: xp.reciprocal(x),
    backward=_recip_gradient,
    keeps=KEEPS_INPUT,
)
ABS = elementwise_op("abs", lambda xp, x, _: xp.abs(x), lambda xp, x: xp.sign(x))
SIGN = Op(
    "sign",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, _: xp.sign(x),
    backward=_sign_gradient,
)


@operation()
def add(lhs: Tensor, rhs: Tensor) -> Tensor:
    """lhs + rhs, broadcast."""
    return binary(ADD, lhs, rhs)


@operation()
def sub(lhs: Tensor, rhs: Tensor) -> Tensor:
    """lhs - rhs, broadcast."""
    return binary(SUB, lhs, rhs)


@operation()
def mul(lhs: Tensor, rhs: Tensor) -> Tensor:
    """lhs * rhs, element by element, broadcast."""
    return binary(MUL, lhs, rhs)


@operation()
def div(lhs: Tensor, rhs: Tensor) -> Tensor:
    """lhs / rhs, element by element, broadcast.

    Burn's divisor's gradient squares the divisor: 1e-20 / 1e-23 gives -inf there, here -1e26.
    """
    return binary(DIV, lhs, rhs)


@operation()
def remainder(lhs: Tensor, rhs: Tensor) -> Tensor:
    """What is left of lhs after whole multiples of rhs, with the sign of rhs.

    Burn's divisor's gradient floors the rounded quotient: -10 for 1.0 % 0.1, here -9.
    """
    return binary(REMAINDER, lhs, rhs)


@operation()
def add_scalar(x: Tensor, c: float) -> Tensor:
    """x + c."""
    return unary(ADD_SCALAR, x, number(c, "add_scalar"))


@operation()
def sub_scalar(x: Tensor, c: float) -> Tensor:
    """x - c."""
    return unary(SUB_SCALAR, x, number(c, "sub_scalar"))


@operation()
def mul_scalar(x: Tensor, c: float) -> Tensor:
    """x * c."""
    return unary(MUL_SCALAR, x, number(c, "mul_scalar"))


@operation()
def div_scalar(x: Tensor, c: float) -> Tensor:
    """x / c.

    Burn's gradient has 1 / c in float32: 0.33333334 for 1 / 3 in float64, here 0.3333333333333333.
    """
    return unary(DIV_SCALAR, x, number(c, "div_scalar"))


@operation()
def remainder_scalar(x: Tensor, c: float) -> Tensor:
    """What is left of x after whole multiples of c, with the sign of c."""
    return unary(REMAINDER_SCALAR, x, number(c, "remainder_scalar"))


@operation("__neg__")
def neg(x: Tensor) -> Tensor:
    """-x."""
    return unary(NEG, x)


@operation()
def recip(x: Tensor) -> Tensor:
    """1 / x.

    Burn's gradient squares x: -0 at 1e22 in float32, here -1e-44.
    """
    return unary(RECIP, x)


@operation("__abs__")
def abs(x: Tensor) -> Tensor:
    """The absolute value; the derivative at 0 is 0."""
    return unary(ABS, x)


@operation()
def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1."""
    return unary(SIGN, x)
