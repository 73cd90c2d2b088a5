"""The embedding as one node: compute bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op, no_flop
from ckptcli.autodiff.ops.select import put_selected
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import checked_indices
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _embedding(xp: Any, weights: Any, indices: Any) -> Any:
    rows = xp.take(weights, xp.reshape(indices, (math.prod(indices.shape),)), 0)
    return xp.reshape(rows, (*indices.shape, weights.shape[1]))


def _embedding_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    weights, indices = step.state, step.params
    flat = xp.reshape(indices, (math.prod(indices.shape),))
    rows = xp.reshape(grad, (flat.shape[0], weights.shape[1]))
    return put_selected(xp, xp.zeros(weights.shape, grad), 0, flat, rows, "add")


EMBEDDING = Op(
    "embedding",
    Bound.COMPUTE,
    1,
    forward=_embedding,
    backward=_embedding_gradient,
    state=lambda xp, out, weights, indices: weights,
    flops=no_flop,
    note="the weights by value, the integer indices",
)


@operation()
def embedding(weights: Tensor, indices: Any) -> Tensor:
    """The row of `weights` for each index: shape [*indices, width]."""
    if len(weights.shape) != 2:
        raise ShapeError(f"`embedding` needs weights of rank 2, got {list(weights.shape)}")
    return unary(
        EMBEDDING, weights, checked_indices(weights, indices, weights.shape[0], "embedding")
    )
