"""Largest and smallest elements: compute bound, with the integer indices as state.

Of equal elements the first is meant, and gets the gradient.

Source: Burn 0.22.1, `burn-autodiff/src/ops/{tensor,maxmin}.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op, one_flop_an_input
from ckptcli.autodiff.ops.arithmetic import ABS
from ckptcli.autodiff.ops.reshape import RESHAPE
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import INDICES_KEPT, positive_dim
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.backends.base import Array
from ckptcli.graph import Bound


def _extreme_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    shape, indices = step.state
    return xp.put_along_dim(shape, indices, grad, step.params)


MAX_DIM = Op(
    "max_dim",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.max_dim(x, dim),
    backward=_extreme_gradient,
    state=lambda xp, out, x, dim: (x.shape, xp.argmax(x, dim)),
    flops=one_flop_an_input,
    note=INDICES_KEPT,
)
MIN_DIM = Op(
    "min_dim",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.min_dim(x, dim),
    backward=_extreme_gradient,
    state=lambda xp, out, x, dim: (x.shape, xp.argmin(x, dim)),
    flops=one_flop_an_input,
    note=INDICES_KEPT,
)


@operation()
def max_dim(x: Tensor, dim: int) -> Tensor:
    """The maximum over `dim`, which stays with size 1; the gradient goes to the first maximum."""
    return unary(MAX_DIM, x, positive_dim(x, dim))


@operation()
def min_dim(x: Tensor, dim: int) -> Tensor:
    """The minimum over `dim`, which stays with size 1; the gradient goes to the first minimum."""
    return unary(MIN_DIM, x, positive_dim(x, dim))


@operation(name="max")
def max_all(x: Tensor) -> Tensor:
    """The largest element, shape (1,): reshape, then max_dim."""
    return unary(MAX_DIM, unary(RESHAPE, x, (-1,)), 0)


@operation(name="min")
def min_all(x: Tensor) -> Tensor:
    """The smallest element, shape (1,): reshape, then min_dim."""
    return unary(MIN_DIM, unary(RESHAPE, x, (-1,)), 0)


@operation()
def max_abs(x: Tensor) -> Tensor:
    """The largest absolute value, shape (1,): abs, reshape, max_dim."""
    return max_all(unary(ABS, x))


@operation()
def max_abs_dim(x: Tensor, dim: int) -> Tensor:
    """The largest absolute value over `dim`: abs, max_dim."""
    return max_dim(unary(ABS, x), dim)


@method()
def argmax(x: Tensor, dim: int) -> Array:
    """The index of the first maximum along `dim`, as the backend's integers: no node."""
    indices: Array = x.device.namespace.argmax(x.value, positive_dim(x, dim))
    return indices


@method()
def argmin(x: Tensor, dim: int) -> Array:
    """The index of the first minimum along `dim`, as the backend's integers: no node."""
    indices: Array = x.device.namespace.argmin(x.value, positive_dim(x, dim))
    return indices


@method()
def max_dim_with_indices(x: Tensor, dim: int) -> tuple[Tensor, Array]:
    """The maximum over `dim` and where it is."""
    return max_dim(x, dim), argmax(x, dim)


@method()
def min_dim_with_indices(x: Tensor, dim: int) -> tuple[Tensor, Array]:
    """The minimum over `dim` and where it is."""
    return min_dim(x, dim), argmin(x, dim)
