"""Powers and roots: memory bound, but for hypot, which Burn marks compute bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.numbers import number
from ckptcli.autodiff.op import (
    KEEPS_BOTH,
    KEEPS_INPUT,
    LEFT_TRACKED,
    RIGHT_TRACKED,
    Op,
    elementwise_op,
)
from ckptcli.autodiff.ops.arithmetic import MUL, RECIP
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor, new_leaf
from ckptcli.autodiff.triangle import Triangle
from ckptcli.graph import Bound


def _powf_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    rhs, lhs = kept.pop(), kept.pop()
    lhs_grad = rhs_grad = None
    if step.mask & LEFT_TRACKED:
        less = xp.where(xp.equal(rhs, 0.0), 0.0, xp.subtract(rhs, 1.0))
        lhs_grad = xp.multiply(grad, xp.multiply(rhs, xp.pow(lhs, less)))
    if step.mask & RIGHT_TRACKED:
        rhs_grad = xp.multiply(grad, _exponent_derivative(xp, lhs, rhs))
    return lhs_grad, rhs_grad


def _exponent_derivative(xp: Any, lhs: Any, rhs: Any) -> Any:
    """lhs**rhs log(lhs), whose limit is 0 where the power is 0 and the logarithm infinite.

    At base 0 and exponent 0 it is 0 too, as in PyTorch.
    """
    of_zero = xp.logical_and(xp.equal(lhs, 0.0), xp.greater_equal(rhs, 0.0))
    of_infinity = xp.logical_and(xp.equal(lhs, math.inf), xp.less(rhs, 0.0))
    is_limit = xp.logical_or(of_zero, of_infinity)
    base = xp.where(is_limit, 1.0, lhs)
    slope = xp.multiply(xp.pow(base, rhs), xp.log(base))
    return xp.where(is_limit, 0.0, slope)


def _powf_scalar_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    exponent = step.params
    scale = xp.pow(kept.pop(), exponent - 1.0)
    scale = xp.multiply(scale, exponent, scale)
    return xp.multiply(grad, scale, grad if owned else None)


def _sqrt_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.sqrt(x)
    derivative = xp.reciprocal(derivative, derivative)
    return xp.multiply(derivative, 0.5, derivative)


def _hypot_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """lhs / r and rhs / r, at most 1, also where r is infinite."""
    rhs, lhs = kept.pop(), kept.pop()
    triangle = Triangle.of(xp, lhs, rhs)
    return (
        xp.multiply(grad, triangle.share(xp, triangle.lhs)) if step.mask & LEFT_TRACKED else None,
        xp.multiply(grad, triangle.share(xp, triangle.rhs)) if step.mask & RIGHT_TRACKED else None,
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
POWF_SCALAR = Op(
    "powf_scalar",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, exponent: xp.pow(x, exponent),
    backward=_powf_scalar_gradient,
    keeps=KEEPS_INPUT,
)
SQRT = elementwise_op("sqrt", lambda xp, x, _: xp.sqrt(x), _sqrt_derivative, True)
HYPOT = Op(
    "hypot",
    Bound.COMPUTE,
    2,
    forward=lambda xp, lhs, rhs, _: xp.hypot(lhs, rhs),
    backward=_hypot_gradient,
    keeps=KEEPS_BOTH,
    broadcasts=True,
)


@operation("powi")
def powf(lhs: Tensor, rhs: Tensor) -> Tensor:
    """lhs ** rhs, element by element; one node whatever the exponents are.

    Burn's gradient is nan of an exponent 2 at base 0, and of a base 0 at exponent 0; here 0.
    """
    return binary(POWF, lhs, rhs)


@operation()
def powf_scalar(x: Tensor, c: float) -> Tensor:
    """x ** c. As in Burn, the exponents 2, 1, 0, -1 and -2 are made of cheaper ops."""
    exponent = number(c, "powf_scalar")
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
    """x ** c for a whole number: the same nodes as `powf_scalar`."""
    return powf_scalar(x, number(c, "powi_scalar"))


@operation()
def square(x: Tensor) -> Tensor:
    """x * x, one node."""
    return binary(MUL, x, x)


@operation()
def sqrt(x: Tensor) -> Tensor:
    """The square root.

    Burn's gradient is 0 at -inf, here nan, as the value is.
    """
    return unary(SQRT, x)


@operation()
def hypot(lhs: Tensor, rhs: Tensor) -> Tensor:
    """sqrt(lhs**2 + rhs**2) without overflow.

    Burn's gradient divides by the hypotenuse, which may be infinite: 0 at (3e38, 3e38) in float32
    and nan at (inf, 1), here 0.707 and 1.
    """
    return binary(HYPOT, lhs, rhs)
