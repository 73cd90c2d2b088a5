"""Reductions: compute bound. A full reduction has shape (1,); a reduced dim stays with size 1.

A product's state holds its input and its own output, as in Burn, whose gradient is product /
factor, nan where a factor is 0. Here it is the product of the others; the output is not looked at.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs` (maxima are in `extremes.py`).
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.op import Flow, Op, Shape, input_shape, one_flop_an_input
from ckptcli.autodiff.ops.arithmetic import DIV_SCALAR, MUL, SUB
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor, method, new_leaf
from ckptcli.backends.base import Array
from ckptcli.graph import Bound


def _sum_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.broadcast_to(grad, step.state)


def _size(shape: Shape) -> float:
    """The number of elements. As a whole number NumPy 1 would make float64 of 65,536 and more."""
    return float(math.prod(shape))


def _mean_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.broadcast_to(xp.divide(grad, _size(step.state)), step.state)


def _mean_dim_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.broadcast_to(xp.divide(grad, float(step.state[step.params])), step.state)


def _mean(xp: Any, x: Any, _: Any) -> Any:
    return xp.divide(xp.sum_all(x), _size(x.shape))


def _mean_dim(xp: Any, x: Any, dim: int) -> Any:
    return xp.divide(xp.sum_dim(x, dim), float(x.shape[dim]))


KEPT = "input and output by value"


def _input_and_output(xp: Any, out: Any, x: Any, params: Any) -> Any:
    return x, out


def _prod(xp: Any, x: Any, _: Any) -> Any:
    return xp.prod_dim(xp.reshape(x, (math.prod(x.shape),)), 0)


def _prod_dim_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x, _ = step.state
    return xp.multiply(grad, product_of_others(xp, x, step.params))


def _prod_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x, _ = step.state
    flat = xp.reshape(x, (math.prod(x.shape),))
    return xp.reshape(xp.multiply(grad, product_of_others(xp, flat, 0)), x.shape)


def product_before(xp: Any, x: Any, dim: int) -> Any:
    """The product of the elements before each along `dim`."""
    first = xp.add(xp.zeros((*x.shape[:dim], 1, *x.shape[dim + 1 :]), x), 1.0)
    others = xp.take_slices(x, (*(slice(None),) * dim, slice(None, -1)))
    return xp.cumulative_prod(xp.concat([first, others], dim), dim)


def product_of_others(xp: Any, x: Any, dim: int) -> Any:
    """The product of all elements along `dim` but each, without a division."""
    if x.shape[dim] == 0:
        return x
    behind = xp.flip(product_before(xp, xp.flip(x, (dim,)), dim), (dim,))
    return xp.multiply(product_before(xp, x, dim), behind)


SUM = Op(
    "sum",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, _: xp.sum_all(x),
    backward=_sum_gradient,
    state=input_shape,
    flow=Flow.SHARED,
    flops=one_flop_an_input,
)
MEAN = Op(
    "mean",
    Bound.COMPUTE,
    1,
    forward=_mean,
    backward=_mean_gradient,
    state=input_shape,
    flow=Flow.SHARED,
    flops=one_flop_an_input,
)
SUM_DIM = Op(
    "sum_dim",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.sum_dim(x, dim),
    backward=_sum_gradient,
    state=input_shape,
    flow=Flow.SHARED,
    flops=one_flop_an_input,
)
MEAN_DIM = Op(
    "mean_dim",
    Bound.COMPUTE,
    1,
    forward=_mean_dim,
    backward=_mean_dim_gradient,
    state=input_shape,
    flow=Flow.SHARED,
    flops=one_flop_an_input,
)
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
    backward=_prod_dim_gradient,
    state=_input_and_output,
    flops=one_flop_an_input,
    note=KEPT,
)


@operation()
def sum(x: Tensor) -> Tensor:
    """The sum of all elements, shape (1,)."""
    return unary(SUM, x)


@operation()
def mean(x: Tensor) -> Tensor:
    """The mean of all elements, shape (1,)."""
    return unary(MEAN, x)


@operation()
def sum_dim(x: Tensor, dim: int) -> Tensor:
    """The sum over `dim`, which stays with size 1."""
    return unary(SUM_DIM, x, positive_dim(x, dim))


@operation()
def mean_dim(x: Tensor, dim: int) -> Tensor:
    """The mean over `dim`, which stays with size 1."""
    return unary(MEAN_DIM, x, positive_dim(x, dim))


@operation()
def prod(x: Tensor) -> Tensor:
    """The product of all elements, shape (1,).

    Burn's gradient divides by each factor: [nan, 0, 0] for [0, 2, 3], here [6, 0, 0].
    """
    return unary(PROD, x)


@operation()
def prod_dim(x: Tensor, dim: int) -> Tensor:
    """The product over `dim`, which stays with size 1.

    Burn's gradient divides by each factor: [nan, 0, 0] for [0, 2, 3], here [6, 0, 0].
    """
    return unary(PROD_DIM, x, positive_dim(x, dim))


@operation()
def var(x: Tensor, dim: int) -> Tensor:
    """The variance over `dim` with divisor size - 1: mean_dim, sub, mul, sum_dim, div_scalar."""
    centred = binary(SUB, x, mean_dim(x, dim))
    squares = sum_dim(binary(MUL, centred, centred), dim)
    return unary(DIV_SCALAR, squares, float(x.shape[dim] - 1))


@method()
def any(x: Tensor) -> Array:
    """Whether an element is not 0, as a mask of shape (1,); takes two ids, as in Burn."""
    namespace = x.device.namespace
    return namespace.greater(_count(x, namespace.not_equal(x.value, 0.0)).value, 0.0)  # type: ignore[no-any-return]


@method()
def all(x: Tensor) -> Array:
    """Whether no element is 0, as a mask of shape (1,); takes two ids, as in Burn."""
    namespace = x.device.namespace
    return namespace.less(_count(x, namespace.equal(x.value, 0.0)).value, 1.0)  # type: ignore[no-any-return]


def _count(x: Tensor, mask: Array) -> Tensor:
    """How often the mask is true: a leaf, then its sum."""
    floats = x.device.namespace.astype(mask, x.dtype)
    return unary(SUM, new_leaf(floats, x.device, tracked=0))
