"""Whole slices by their index along one dim, and putting slices back. Memory bound.

An index that is put twice with `select_assign` leaves its last value, and both get the gradient, as
in Burn.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import many, unary
from ckptcli.autodiff.op import LEFT_TRACKED, RIGHT_TRACKED, Flow, Op, input_shape, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import (
    INDICES_KEPT,
    along_dim,
    checked_indices,
    positive_dim,
    put_at,
)
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def put_selected(xp: Any, x: Any, dim: int, indices: Any, values: Any, update: str) -> Any:
    """A copy of x with slices put at `indices` along `dim`."""
    sizes = [1] * len(x.shape)
    sizes[dim] = indices.shape[0]
    positions = along_dim(xp, x.shape, xp.reshape(indices, tuple(sizes)), dim, values.shape)
    return put_at(xp, x, positions, values, update)


def _select(xp: Any, x: Any, params: tuple[int, Any]) -> Any:
    dim, indices = params
    return xp.take(x, indices, dim)


def _select_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    dim, indices = step.params
    return put_selected(xp, xp.zeros(step.state, grad), dim, indices, grad, "add")


def _put(update: str) -> Any:
    def forward(xp: Any, x: Any, values: Any, params: tuple[int, Any]) -> Any:
        dim, indices = params
        expected = [*x.shape]
        expected[dim] = indices.shape[0]
        if list(values.shape) != expected:
            raise ValueError(f"values of shape {expected} are needed")
        return put_selected(xp, x, dim, indices, values, update)

    return forward


def _select_add_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return (
        grad if step.mask & LEFT_TRACKED else None,
        _select(xp, grad, step.params) if step.mask & RIGHT_TRACKED else None,
    )


def _select_assign_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x_grad = values_grad = None
    if step.mask & RIGHT_TRACKED:
        values_grad = _select(xp, grad, step.params)
    if step.mask & LEFT_TRACKED:
        dim, indices = step.params
        shape = (*grad.shape[:dim], indices.shape[0], *grad.shape[dim + 1 :])
        x_grad = put_selected(xp, grad, dim, indices, xp.zeros(shape, grad), "assign")
    return x_grad, values_grad


SELECT = Op(
    "select",
    Bound.MEMORY,
    1,
    forward=_select,
    backward=_select_gradient,
    state=input_shape,
    flops=no_flop,
    note=INDICES_KEPT,
)
SELECT_ADD = Op(
    "select_add",
    Bound.MEMORY,
    2,
    forward=_put("add"),
    backward=_select_add_gradient,
    flow=Flow.PASSED,
    flops=lambda operands, output: math.prod(operands[1]),
    note=INDICES_KEPT,
)
SELECT_ASSIGN = Op(
    "select_assign",
    Bound.MEMORY,
    2,
    forward=_put("assign"),
    backward=_select_assign_gradient,
    flops=no_flop,
    note=INDICES_KEPT,
)


def _dim_and_indices(x: Tensor, dim: int, indices: Any, name: str) -> tuple[int, Any]:
    axis = positive_dim(x, dim)
    array = checked_indices(x, indices, x.shape[axis], name)
    return axis, x.device.namespace.reshape(array, (math.prod(array.shape),))


@operation()
def select(x: Tensor, dim: int, indices: Any) -> Tensor:
    """The slices at `indices` along `dim`, in their order; an index may come twice."""
    return unary(SELECT, x, _dim_and_indices(x, dim, indices, "select"))


@operation()
def select_add(x: Tensor, dim: int, indices: Any, values: Tensor) -> Tensor:
    """x with the slices of `values` added at `indices` along `dim`."""
    return many(SELECT_ADD, [x, values], _dim_and_indices(x, dim, indices, "select_add"))


@operation()
def select_assign(x: Tensor, dim: int, indices: Any, values: Tensor) -> Tensor:
    """x with its slices at `indices` along `dim` replaced by those of `values`."""
    return many(SELECT_ASSIGN, [x, values], _dim_and_indices(x, dim, indices, "select_assign"))
