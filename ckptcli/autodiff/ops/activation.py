"""Activations that are one node: memory bound, keep their input.

Those that Burn composes are in `ckptcli.autodiff.functions.activation`.

Source: Burn 0.22.1, `burn-autodiff/src/ops/activation.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import KEEPS_INPUT, Op, elementwise_op
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def _log_sigmoid(xp: Any, x: Any, _: Any) -> Any:
    """min(x, 0) - log(1 + exp(-|x|)): the exponential never overflows."""
    tail = xp.log1p(xp.exp(xp.negative(xp.abs(x))))
    return xp.subtract(xp.minimum(x, 0.0), tail)


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
LOG_SIGMOID = elementwise_op("log_sigmoid", _log_sigmoid, lambda xp, x: xp.sigmoid(xp.negative(x)))


@operation()
def relu(x: Tensor) -> Tensor:
    """max(x, 0); the derivative at 0 is 0."""
    return unary(RELU, x)


@operation()
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    Burn's gradient s * (1 - s) is 0 at 20 in float32, here 2.06e-9.
    """
    return unary(SIGMOID, x)


@operation()
def gelu(x: Tensor) -> Tensor:
    """x * (1 + erf(x / sqrt(2))) / 2.

    Burn's is 0 at -6 in float32, here -5.92e-9; its gradient is nan at inf, here 1.
    """
    return unary(GELU, x)


@operation()
def log_sigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), accurate in both tails."""
    return unary(LOG_SIGMOID, x)
