"""Functions of one tensor, element by element. All memory bound; all keep their input.

A derivative that contains the function itself computes it again from the input, under every
strategy, as Burn does: no op holds its own output.

Source: Burn 0.22.1, `burn-autodiff/src/ops/{tensor,activation}.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import KEEPS_INPUT, Op
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def elementwise_op(
    name: str,
    forward: Callable[..., Any],
    derivative: Callable[[Any, Any], Any],
    evaluates_again: bool = False,
) -> Op:
    """An op whose gradient is `derivative(namespace, x)` times the incoming one."""

    def backward(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
        return xp.multiply(grad, derivative(xp, kept.pop()), grad if owned else None)

    return Op(
        name,
        Bound.MEMORY,
        1,
        forward,
        backward,
        keeps=KEEPS_INPUT,
        evaluates_again=evaluates_again,
    )


def _log1p_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.add(x, 1.0)
    return xp.reciprocal(derivative, derivative)


def _sqrt_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.sqrt(x)
    derivative = xp.reciprocal(derivative, derivative)
    return xp.multiply(derivative, 0.5, derivative)


def _cos_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.sin(x)
    return xp.negative(derivative, derivative)


def _tanh_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.tanh(x)
    derivative = xp.square(derivative, derivative)
    derivative = xp.negative(derivative, derivative)
    return xp.add(derivative, 1.0, derivative)


def _erf_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.square(x)
    derivative = xp.exp(xp.negative(derivative, derivative))
    return xp.multiply(derivative, 2.0 / math.sqrt(math.pi), derivative)


def _log_sigmoid(xp: Any, x: Any, _: Any) -> Any:
    """min(x, 0) - log(1 + exp(-|x|)): the exponential never overflows."""
    tail = xp.log1p(xp.exp(xp.negative(xp.abs(x))))
    return xp.subtract(xp.minimum(x, 0.0), tail)


EXP = elementwise_op("exp", lambda xp, x, _: xp.exp(x), lambda xp, x: xp.exp(x), True)
LOG = elementwise_op("log", lambda xp, x, _: xp.log(x), lambda xp, x: xp.reciprocal(x))
LOG1P = elementwise_op("log1p", lambda xp, x, _: xp.log1p(x), _log1p_derivative)
SQRT = elementwise_op("sqrt", lambda xp, x, _: xp.sqrt(x), _sqrt_derivative, True)
ABS = elementwise_op("abs", lambda xp, x, _: xp.abs(x), lambda xp, x: xp.sign(x))
SIN = elementwise_op("sin", lambda xp, x, _: xp.sin(x), lambda xp, x: xp.cos(x))
COS = elementwise_op("cos", lambda xp, x, _: xp.cos(x), _cos_derivative)
TANH = elementwise_op("tanh", lambda xp, x, _: xp.tanh(x), _tanh_derivative, True)
RELU = Op(
    "relu",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, _: xp.relu(x),
    backward=lambda xp, grad, owned, kept, step: xp.relu_gradient(
        kept.pop(), grad, grad if owned else None
    ),
    keeps=KEEPS_INPUT,
)
SIGMOID = Op(
    "sigmoid",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, _: xp.sigmoid(x),
    backward=lambda xp, grad, owned, kept, step: xp.sigmoid_gradient(
        kept.pop(), grad, grad if owned else None
    ),
    keeps=KEEPS_INPUT,
    evaluates_again=True,
)
GELU = Op(
    "gelu",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, _: xp.gelu(x),
    backward=lambda xp, grad, owned, kept, step: xp.gelu_gradient(
        kept.pop(), grad, grad if owned else None
    ),
    keeps=KEEPS_INPUT,
)

ERF = elementwise_op("erf", lambda xp, x, _: xp.erf(x), _erf_derivative)
LOG_SIGMOID = elementwise_op("log_sigmoid", _log_sigmoid, lambda xp, x: xp.sigmoid(xp.negative(x)))


@operation()
def exp(x: Tensor) -> Tensor:
    """E to the power of x."""
    return unary(EXP, x)


@operation()
def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    return unary(LOG, x)


@operation()
def log1p(x: Tensor) -> Tensor:
    """log(1 + x), accurate near 0."""
    return unary(LOG1P, x)


@operation()
def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    return unary(SQRT, x)


@operation("__abs__")
def abs(x: Tensor) -> Tensor:
    """The absolute value; the derivative at 0 is 0."""
    return unary(ABS, x)


@operation()
def sin(x: Tensor) -> Tensor:
    """The sine."""
    return unary(SIN, x)


@operation()
def cos(x: Tensor) -> Tensor:
    """The cosine."""
    return unary(COS, x)


@operation()
def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return unary(TANH, x)


@operation()
def relu(x: Tensor) -> Tensor:
    """max(x, 0); the derivative at 0 is 0."""
    return unary(RELU, x)


@operation()
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return unary(SIGMOID, x)


@operation()
def gelu(x: Tensor) -> Tensor:
    """X * (1 + erf(x / sqrt(2))) / 2."""
    return unary(GELU, x)


@operation()
def erf(x: Tensor) -> Tensor:
    """The error function."""
    return unary(ERF, x)


@operation()
def log_sigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), accurate in both tails."""
    return unary(LOG_SIGMOID, x)
