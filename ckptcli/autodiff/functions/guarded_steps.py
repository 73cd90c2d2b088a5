"""Steps of compositions that share the work otherwise than Burn's, node for node.

A step that does not know what the next one does with its value overflows, or loses digits, where
the composition does neither: exp(x) of a branch that is not selected, log(1 + exp(x)) of a small x.
These steps have the name, the bound and the checkpoints of Burn's, so that ids, logs and what is
held stay, and hand on another value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ckptcli.autodiff.op import KEEPS_INPUT, Flow, Op, elementwise_op
from ckptcli.autodiff.ops.extremes import MAX_DIM
from ckptcli.graph import Bound

CUBED_UP_TO = 30.0
"""The hyperbolic tangent of more than its cube is 1, and its derivative 0, in every dtype."""


def _softplus(xp: Any, x: Any, _: Any) -> Any:
    """max(x, 0) + log(1 + exp(-|x|)): the exponential never overflows, and no tail is lost."""
    return xp.add(xp.maximum(x, 0.0), xp.log1p(xp.exp(xp.negative(xp.abs(x)))))


def _limited(xp: Any, x: Any) -> Any:
    return xp.minimum(xp.maximum(x, -CUBED_UP_TO), CUBED_UP_TO)


EXP_LESS_ONE = elementwise_op(
    "exp",
    lambda xp, x, _: xp.expm1(xp.minimum(x, 0.0)),
    lambda xp, x: xp.exp(xp.minimum(x, 0.0)),
    evaluates_again=True,
)
"""exp(x) less the 1 that the next step would subtract, for x <= 0; else 0, of no consequence."""

EXP_TO_COME = Op(
    "exp",
    Bound.MEMORY,
    1,
    forward=lambda xp, x, _: xp.add(x, 0.0),
    backward=lambda xp, grad, owned, kept, step: grad,
    keeps=KEEPS_INPUT,
    flow=Flow.PASSED,
    evaluates_again=True,
)
"""x itself, for a logarithm that takes the exponential, too."""

LOG_OF_ONE_AND_EXP = elementwise_op("log", _softplus, lambda xp, x: xp.sigmoid(x))
"""log(1 + exp(x)) of the x that `EXP_TO_COME` passed on."""

LIMITED_CUBE = elementwise_op(
    "powf_scalar",
    lambda xp, x, exponent: xp.pow(_limited(xp, x), exponent),
    lambda xp, x: xp.multiply(xp.square(_limited(xp, x)), 3.0),
)
"""The cube of x, or of the limit."""

MAX_OR_ZERO = replace(MAX_DIM, forward=lambda xp, x, dim: xp.maximum(xp.max_dim(x, dim), 0.0))
"""The largest of a row and of 0, which counts as one more element."""
