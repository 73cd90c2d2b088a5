"""Tensors joined along a dim; Burn marks it neither compute nor memory bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import many
from ckptcli.autodiff.op import Flow, Op, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _cat_state(xp: Any, out: Any, *values_and_dim: Any) -> Any:
    *values, dim = values_and_dim
    return [value.shape[dim] for value in values]


def _cat(xp: Any, *values_and_dim: Any) -> Any:
    *values, dim = values_and_dim
    return xp.concat(values, dim)


def _cat_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    dim = step.params
    before = (slice(None),) * dim
    start = 0
    gradients = []
    for position, size in enumerate(step.state):
        piece = None
        if step.mask >> position & 1:
            piece = xp.take_slices(grad, (*before, slice(start, start + size)))
        gradients.append(piece)
        start += size
    return tuple(gradients)


CAT = Op(
    "cat",
    Bound.AMBIGUOUS,
    0,
    forward=_cat,
    backward=_cat_gradient,
    state=_cat_state,
    flow=Flow.PASSED,
    flops=no_flop,
    step_when_untracked=False,
)


@operation()
def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Tensors joined along `dim`.

    Raises:
        ShapeError: no tensor, or shapes that differ in another dim.
    """
    if not tensors:
        raise ShapeError("`cat` needs at least one tensor")
    return many(CAT, tensors, positive_dim(tensors[0], dim))
