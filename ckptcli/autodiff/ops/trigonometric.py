"""Trigonometric and hyperbolic functions and their inverses: memory bound, keep their input.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.op import (
    KEEPS_BOTH,
    KEEPS_INPUT,
    LEFT_TRACKED,
    RIGHT_TRACKED,
    Op,
    elementwise_op,
)
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.autodiff.triangle import Triangle
from ckptcli.graph import Bound


def _tan_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.square(xp.tan(x))
    return xp.add(derivative, 1.0, derivative)


def _cos_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.sin(x)
    return xp.negative(derivative, derivative)


def _tanh_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """4 sigmoid'(2 x): Burn's 1 - tanh(x)**2 is 0 long before the derivative is."""
    twice = xp.multiply(kept.pop(), 2.0)
    gradient = xp.sigmoid_gradient(twice, grad, grad if owned else None)
    return xp.multiply(gradient, 4.0, gradient)


def _asin_derivative(xp: Any, x: Any) -> Any:
    """(1 - x)(1 + x) for 1 - x**2, which loses digits near 1."""
    root = xp.sqrt(xp.multiply(xp.subtract(1.0, x), xp.add(x, 1.0)))
    return xp.reciprocal(root, root)


def _acos_derivative(xp: Any, x: Any) -> Any:
    return xp.negative(_asin_derivative(xp, x))


def _atan_derivative(xp: Any, x: Any) -> Any:
    inverse = _asinh_derivative(xp, x)
    return xp.square(inverse, inverse)


def _asinh_derivative(xp: Any, x: Any) -> Any:
    """1 / sqrt(1 + x**2), without the square."""
    root = xp.hypot(x, xp.add(xp.zeros_like(x), 1.0))
    return xp.reciprocal(root, root)


def _acosh_derivative(xp: Any, x: Any) -> Any:
    """1 / sqrt(x**2 - 1), without the square; nan below 1, as the function is."""
    root = xp.multiply(xp.sqrt(xp.subtract(x, 1.0)), xp.sqrt(xp.add(x, 1.0)))
    return xp.reciprocal(root, root)


def _atanh_derivative(xp: Any, x: Any) -> Any:
    return xp.divide(xp.reciprocal(xp.subtract(1.0, x)), xp.add(x, 1.0))


def _atan2_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """(x / r) / r and -(y / r) / r with r = hypot(x, y): no operand is squared."""
    x, y = kept.pop(), kept.pop()
    triangle = Triangle.of(xp, x, y)
    y_grad = x_grad = None
    if step.mask & LEFT_TRACKED:
        y_grad = xp.multiply(grad, triangle.share_of_square(xp, triangle.lhs))
    if step.mask & RIGHT_TRACKED:
        turned = xp.negative(triangle.share_of_square(xp, triangle.rhs))
        x_grad = xp.multiply(grad, turned)
    return y_grad, x_grad


SIN = elementwise_op("sin", lambda xp, x, _: xp.sin(x), lambda xp, x: xp.cos(x))
COS = elementwise_op("cos", lambda xp, x, _: xp.cos(x), _cos_derivative)
TAN = elementwise_op("tan", lambda xp, x, _: xp.tan(x), _tan_derivative, True)
SINH = elementwise_op("sinh", lambda xp, x, _: xp.sinh(x), lambda xp, x: xp.cosh(x))
COSH = elementwise_op("cosh", lambda xp, x, _: xp.cosh(x), lambda xp, x: xp.sinh(x))
TANH = Op(
    "tanh",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, _: xp.tanh(x),
    backward=_tanh_gradient,
    keeps=KEEPS_INPUT,
    evaluates_again=True,
)
ASIN = elementwise_op("asin", lambda xp, x, _: xp.asin(x), _asin_derivative)
ACOS = elementwise_op("acos", lambda xp, x, _: xp.acos(x), _acos_derivative)
ATAN = elementwise_op("atan", lambda xp, x, _: xp.atan(x), _atan_derivative)
ASINH = elementwise_op("asinh", lambda xp, x, _: xp.asinh(x), _asinh_derivative)
ACOSH = elementwise_op("acosh", lambda xp, x, _: xp.acosh(x), _acosh_derivative)
ATANH = elementwise_op("atanh", lambda xp, x, _: xp.atanh(x), _atanh_derivative)
ATAN2 = Op(
    "atan2",
    Bound.MEMORY,
    2,
    forward=lambda xp, y, x, _: xp.atan2(y, x),
    backward=_atan2_gradient,
    keeps=KEEPS_BOTH,
    broadcasts=True,
)


@operation()
def sin(x: Tensor) -> Tensor:
    """The sine."""
    return unary(SIN, x)


@operation()
def cos(x: Tensor) -> Tensor:
    """The cosine."""
    return unary(COS, x)


@operation()
def tan(x: Tensor) -> Tensor:
    """The tangent."""
    return unary(TAN, x)


@operation()
def sinh(x: Tensor) -> Tensor:
    """The hyperbolic sine."""
    return unary(SINH, x)


@operation()
def cosh(x: Tensor) -> Tensor:
    """The hyperbolic cosine."""
    return unary(COSH, x)


@operation()
def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent.

    Burn's gradient 1 - tanh(x)**2 is 0 at 10 in float32, here 8.24e-9.
    """
    return unary(TANH, x)


@operation()
def asin(x: Tensor) -> Tensor:
    """The arc sine."""
    return unary(ASIN, x)


@operation()
def acos(x: Tensor) -> Tensor:
    """The arc cosine."""
    return unary(ACOS, x)


@operation()
def atan(x: Tensor) -> Tensor:
    """The arc tangent.

    Burn's gradient squares x: 0 at 1e20 in float32, here 1e-40.
    """
    return unary(ATAN, x)


@operation()
def asinh(x: Tensor) -> Tensor:
    """The inverse of the hyperbolic sine.

    Burn's gradient squares x: 0 at 1e20 in float32, here 1e-20.
    """
    return unary(ASINH, x)


@operation()
def acosh(x: Tensor) -> Tensor:
    """The inverse of the hyperbolic cosine, for x >= 1.

    Burn's gradient squares x: 0 at 1e20 in float32, here 1e-20; nan below 1, where Burn has one.
    """
    return unary(ACOSH, x)


@operation()
def atanh(x: Tensor) -> Tensor:
    """The inverse of the hyperbolic tangent.

    Burn's gradient squares x: 0 at 1e20 in float32, here -1e-40; the value is nan there.
    """
    return unary(ATANH, x)


@operation()
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the point (x, y).

    Burn's gradient squares both: inf at (1e-23, 1e-23) in float32, here 5e22; nan at (1, inf),
    here 0.
    """
    return binary(ATAN2, y, x)
