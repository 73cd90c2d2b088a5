"""Arithmetic: tensor with tensor, tensor with scalar. All memory bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.op import (
    KEEPS_DIVISION,
    KEEPS_INPUT,
    KEEPS_OTHER,
    LEFT_TRACKED,
    RIGHT_TRACKED,
    Flow,
    Op,
)
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor, new_leaf
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
    rhs = kept.pop()
    lhs_grad = rhs_grad = None
    if step.mask & RIGHT_TRACKED:
        rhs_grad = xp.multiply(rhs, rhs)
        rhs_grad = xp.divide(kept.pop(), rhs_grad)
        rhs_grad = xp.multiply(grad, xp.negative(rhs_grad, rhs_grad))
    if step.mask & LEFT_TRACKED:
        lhs_grad = xp.multiply(grad, xp.reciprocal(rhs))
    return lhs_grad, rhs_grad


def _scale_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.multiply(grad, step.params, grad if owned else None)


def _pass_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return grad


def _recip_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x = kept.pop()
    scale = xp.multiply(x, x)
    scale = xp.reciprocal(scale, scale)
    scale = xp.negative(scale, scale)
    return xp.multiply(grad, scale, grad if owned else None)


def _powf_scalar_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    exponent = step.params
    scale = xp.pow(kept.pop(), exponent - 1.0)
    scale = xp.multiply(scale, exponent, scale)
    return xp.multiply(grad, scale, grad if owned else None)


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
POWF_SCALAR = Op(
    "powf_scalar",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, exponent: xp.pow(x, exponent),
    backward=_powf_scalar_gradient,
    keeps=KEEPS_INPUT,
)


@operation()
def add(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Lhs + rhs, broadcast."""
    return binary(ADD, lhs, rhs)


@operation()
def sub(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Lhs - rhs, broadcast."""
    return binary(SUB, lhs, rhs)


@operation()
def mul(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Lhs * rhs, element by element, broadcast."""
    return binary(MUL, lhs, rhs)


@operation()
def div(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Lhs / rhs, element by element, broadcast."""
    return binary(DIV, lhs, rhs)


@operation()
def add_scalar(x: Tensor, c: float) -> Tensor:
    """X + c."""
    return unary(ADD_SCALAR, x, float(c))


@operation()
def sub_scalar(x: Tensor, c: float) -> Tensor:
    """X - c."""
    return unary(SUB_SCALAR, x, float(c))


@operation()
def mul_scalar(x: Tensor, c: float) -> Tensor:
    """X * c."""
    return unary(MUL_SCALAR, x, float(c))


@operation()
def div_scalar(x: Tensor, c: float) -> Tensor:
    """X / c."""
    return unary(DIV_SCALAR, x, float(c))


@operation("__neg__")
def neg(x: Tensor) -> Tensor:
    """-x."""
    return unary(NEG, x)


@operation()
def recip(x: Tensor) -> Tensor:
    """1 / x."""
    return unary(RECIP, x)


@operation("__pow__")
def powf_scalar(x: Tensor, c: float) -> Tensor:
    """X ** c. As in Burn, the exponents 2, 1, 0, -1 and -2 are made of cheaper ops."""
    exponent = float(c)
    if exponent == 0.0:
        namespace = x.device.namespace
        return new_leaf(namespace.add(namespace.zeros_like(x.value), 1.0), x.device, tracked=0)
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return binary(MUL, x, x)
    if exponent == -1.0:
        return unary(RECIP, x)
    if exponent == -2.0:
        return unary(RECIP, binary(MUL, x, x))
    return unary(POWF_SCALAR, x, exponent)


@operation()
def powi_scalar(x: Tensor, c: int) -> Tensor:
    """X ** c for a whole number: the same nodes as `powf_scalar`."""
    return powf_scalar(x, float(c))


@operation()
def square(x: Tensor) -> Tensor:
    """X * x, one node."""
    return binary(MUL, x, x)
