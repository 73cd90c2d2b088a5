"""Sliding windows along a dim: compute bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op, input_shape, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor
from ckptcli.autodiff.windows import Window, fold, windows
from ckptcli.graph import Bound


def _unfold(xp: Any, x: Any, params: tuple[int, Window]) -> Any:
    return windows(xp, x, *params)


def _unfold_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    dim, window = step.params
    return fold(xp, grad, dim, window, step.state[dim])


UNFOLD = Op(
    "unfold",
    Bound.COMPUTE,
    1,
    forward=_unfold,
    backward=_unfold_gradient,
    state=input_shape,
    flops=no_flop,
)


@operation()
def unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """The windows of `size` along `dim`, one every `step`; a window is the new last dim."""
    axis = positive_dim(x, dim)
    return unary(UNFOLD, x, (axis, Window(size, step)))
