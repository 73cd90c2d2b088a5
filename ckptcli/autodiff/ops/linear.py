"""The linear layer as one node: compute bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import many
from ckptcli.autodiff.op import KEEPS_LINEAR, Op
from ckptcli.autodiff.ops.reshape import reshape
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound

X_TRACKED, WEIGHT_TRACKED, BIAS_TRACKED = 1, 2, 4


def _linear(xp: Any, x: Any, weight: Any, *bias_and_params: Any) -> Any:
    product = xp.matmul(x, weight)
    return xp.add(product, bias_and_params[0]) if len(bias_and_params) == 2 else product


def _rows(xp: Any, array: Any) -> Any:
    width = array.shape[-1]
    return xp.reshape(array, (math.prod(array.shape[:-1]), width))


def _linear_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x_grad = weight_grad = bias_grad = None
    weight = kept.pop() if step.mask & X_TRACKED else None
    rows = _rows(xp, grad) if step.mask & ~X_TRACKED else None
    if step.mask & WEIGHT_TRACKED:
        weight_grad = xp.matmul(xp.matrix_transpose(_rows(xp, kept.pop())), rows)
    if step.mask & BIAS_TRACKED:
        bias_grad = xp.reshape(xp.sum_dim(rows, 0), (grad.shape[-1],))
    if weight is not None:
        x_grad = xp.matmul(grad, xp.matrix_transpose(weight))
    return (x_grad, weight_grad, bias_grad)[: len(step.parents)]


LINEAR = Op(
    "linear",
    Bound.COMPUTE,
    0,
    forward=_linear,
    backward=_linear_gradient,
    keeps=KEEPS_LINEAR,
    flops=lambda operands, output: (
        2 * math.prod(output) * operands[0][-1] + math.prod(output) * (len(operands) - 2)
    ),
)


@operation()
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight + bias as one node; weight is [inputs, outputs]. Rank 1 is reshaped around it.

    Raises:
        ShapeError: the weight is no matrix, or the bias has not one number an output.
    """
    if len(weight.shape) != 2:
        raise ShapeError(f"`linear` needs a weight [inputs, outputs], got {list(weight.shape)}")
    if bias is not None and bias.shape != weight.shape[1:]:
        raise ShapeError(
            f"`linear` needs a bias of shape {list(weight.shape[1:])}, got {list(bias.shape)}",
            "add what has another shape with `+`",
        )
    if len(x.shape) == 1:
        return reshape(linear(reshape(x, [1, -1]), weight, bias), [-1])
    return many(LINEAR, [x, weight] if bias is None else [x, weight, bias])
