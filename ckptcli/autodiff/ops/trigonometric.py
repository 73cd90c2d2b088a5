"""Trigonometric and hyperbolic functions and their inverses: memory bound, keep their input.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.op import KEEPS_BOTH, LEFT_TRACKED, RIGHT_TRACKED, Op, elementwise_op
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def _tan_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.square(xp.tan(x))
    return xp.add(derivative, 1.0, derivative)


def _cos_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.sin(x)
    return xp.negative(derivative, derivative)


def _tanh_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.tanh(x)
    derivative = xp.square(derivative, derivative)
    derivative = xp.negative(derivative, derivative)
    return xp.add(derivative, 1.0, derivative)


def _reciprocal_root(xp: Any, x: Any) -> Any:
    root = xp.sqrt(x)
    return xp.reciprocal(root, root)


def _asin_derivative(xp: Any, x: Any) -> Any:
    return _reciprocal_root(xp, xp.subtract(1.0, xp.square(x)))


def _acos_derivative(xp: Any, x: Any) -> Any:
    return xp.negative(_asin_derivative(xp, x))


def _atan_derivative(xp: Any, x: Any) -> Any:
    return xp.reciprocal(xp.add(xp.square(x), 1.0))


def _asinh_derivative(xp: Any, x: Any) -> Any:
    return _reciprocal_root(xp, xp.add(xp.square(x), 1.0))


def _acosh_derivative(xp: Any, x: Any) -> Any:
    return _reciprocal_root(xp, xp.subtract(xp.square(x), 1.0))


def _atanh_derivative(xp: Any, x: Any) -> Any:
    return xp.reciprocal(xp.subtract(1.0, xp.square(x)))


def _atan2_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x, y = kept.pop(), kept.pop()
    scale = xp.divide(grad, xp.add(xp.square(x), xp.square(y)))
    return (
        xp.multiply(scale, x) if step.mask & LEFT_TRACKED else None,
        xp.multiply(scale, xp.negative(y)) if step.mask & RIGHT_TRACKED else None,
    )


SIN = elementwise_op("sin", lambda xp, x, _: xp.sin(x), lambda xp, x: xp.cos(x))
COS = elementwise_op("cos", lambda xp, x, _: xp.cos(x), _cos_derivative)
TAN = elementwise_op("tan", lambda xp, x, _: xp.tan(x), _tan_derivative, True)
SINH = elementwise_op("sinh", lambda xp, x, _: xp.sinh(x), lambda xp, x: xp.cosh(x))
COSH = elementwise_op("cosh", lambda xp, x, _: xp.cosh(x), lambda xp, x: xp.sinh(x))
TANH = elementwise_op("tanh", lambda xp, x, _: xp.tanh(x), _tanh_derivative, True)
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
    """The hyperbolic tangent."""
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
    """The arc tangent."""
    return unary(ATAN, x)


@operation()
def asinh(x: Tensor) -> Tensor:
    """The inverse of the hyperbolic sine."""
    return unary(ASINH, x)


@operation()
def acosh(x: Tensor) -> Tensor:
    """The inverse of the hyperbolic cosine, for x >= 1."""
    return unary(ACOSH, x)


@operation()
def atanh(x: Tensor) -> Tensor:
    """The inverse of the hyperbolic tangent."""
    return unary(ATANH, x)


@operation()
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the point (x, y)."""
    return binary(ATAN2, y, x)
