"""The exponential, logarithms and the error function: memory bound, keep their input.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import elementwise_op
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor


def _log1p_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.add(x, 1.0)
    return xp.reciprocal(derivative, derivative)


def _erf_derivative(xp: Any, x: Any) -> Any:
    derivative = xp.square(x)
    derivative = xp.exp(xp.negative(derivative, derivative))
    return xp.multiply(derivative, 2.0 / math.sqrt(math.pi), derivative)


EXP = elementwise_op("exp", lambda xp, x, _: xp.exp(x), lambda xp, x: xp.exp(x), True)
LOG = elementwise_op("log", lambda xp, x, _: xp.log(x), lambda xp, x: xp.reciprocal(x))
LOG1P = elementwise_op("log1p", lambda xp, x, _: xp.log1p(x), _log1p_derivative)
ERF = elementwise_op("erf", lambda xp, x, _: xp.erf(x), _erf_derivative)


@operation()
def exp(x: Tensor) -> Tensor:
    """e to the power of x."""
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
def erf(x: Tensor) -> Tensor:
    """The error function."""
    return unary(ERF, x)
