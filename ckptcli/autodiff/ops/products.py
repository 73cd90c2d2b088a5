"""Products: compute bound, with the only states that hold an op's own output.

A gradient is product / factor: nan where a factor is 0, as in Burn.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op, one_flop_an_input
from ckptcli.autodiff.ops.shape import positive_dim
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound

KEPT = "input and output by value"


def _input_and_output(xp: Any, out: Any, x: Any, params: Any) -> Any:
    return x, out


def _prod(xp: Any, x: Any, _: Any) -> Any:
    return xp.prod_dim(xp.reshape(x, (math.prod(x.shape),)), 0)


def _prod_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x, out = step.state
    return xp.divide(xp.multiply(grad, out), x)


PROD = Op(
    "prod",
    Bound.COMPUTE,
    1,
    forward=_prod,
    backward=_prod_gradient,
    state=_input_and_output,
    flops=one_flop_an_input,
    note=KEPT,
)
PROD_DIM = Op(
    "prod_dim",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.prod_dim(x, dim),
    backward=_prod_gradient,
    state=_input_and_output,
    flops=one_flop_an_input,
    note=KEPT,
)


@operation()
def prod(x: Tensor) -> Tensor:
    """The product of all elements, shape (1,)."""
    return unary(PROD, x)


@operation()
def prod_dim(x: Tensor, dim: int) -> Tensor:
    """The product over `dim`, which stays with size 1."""
    return unary(PROD_DIM, x, positive_dim(x, dim))
