"""Single elements and vectors put at their indices: compute bound.

`scatter` and `scatter_nd` with the update "assign" or "mul" want each place at most once: with
repeated indices the gradient is Burn's, in which every update takes the whole gradient.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import many
from ckptcli.autodiff.op import LEFT_TRACKED, RIGHT_TRACKED, Flow, Op, no_flop
from ckptcli.autodiff.ops.gather import (
    Params,
    gather_at,
    index_vectors,
    indices_along,
    positions_of,
    taken_shape,
)
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import INDICES_KEPT, put_at, take_at
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _scatter(update: str) -> Any:
    def forward(xp: Any, x: Any, values: Any, params: Params) -> Any:
        expected = taken_shape(x.shape, params)
        if values.shape != expected:
            raise ValueError(f"values of shape {list(expected)} are needed")
        return put_at(xp, x, positions_of(xp, x.shape, params), values, update)

    return forward


def _scatter_add_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return (
        grad if step.mask & LEFT_TRACKED else None,
        gather_at(xp, grad, step.params) if step.mask & RIGHT_TRACKED else None,
    )


def _scatter_assign_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x_grad = values_grad = None
    if step.mask & RIGHT_TRACKED:
        values_grad = gather_at(xp, grad, step.params)
    if step.mask & LEFT_TRACKED:
        positions = positions_of(xp, grad.shape, step.params)
        zeros = xp.zeros(step.state, grad)
        x_grad = put_at(xp, grad, positions, zeros, "assign")
    return x_grad, values_grad


def _scatter_mul_state(xp: Any, out: Any, x: Any, values: Any, params: Params) -> Any:
    """Each factor that the other's gradient needs, by value: the checkpointer has neither."""
    mask = params[2]
    return x if mask & RIGHT_TRACKED else None, values if mask & LEFT_TRACKED else None


def _scatter_mul_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x, values = step.state
    x_grad = values_grad = None
    if step.mask & RIGHT_TRACKED:
        values_grad = gather_at(xp, xp.multiply(grad, x), step.params)
    if step.mask & LEFT_TRACKED:
        x_grad = put_at(xp, grad, positions_of(xp, grad.shape, step.params), values, "mul")
    return x_grad, values_grad


def _scatter_extreme_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """The first that has the value that is left at its place gets the gradient: the element, or
    one of the values that were put there.
    """
    x, values = step.state
    positions = positions_of(xp, x.shape, step.params)
    left = gather_at(xp, step.op.forward(xp, x, values, step.params), step.params)
    stays = _same(xp, gather_at(xp, x, step.params), left)
    taken = gather_at(xp, grad, step.params)
    x_grad = values_grad = None
    if step.mask & RIGHT_TRACKED:
        wins = _first_at_each(xp, positions, _same(xp, values, left), math.prod(x.shape))
        values_grad = xp.where(stays, 0.0, xp.where(wins, taken, 0.0))
    if step.mask & LEFT_TRACKED:
        x_grad = put_at(xp, grad, positions, xp.where(stays, taken, 0.0), "assign")
    return x_grad, values_grad


def _same(xp: Any, lhs: Any, rhs: Any) -> Any:
    """Whether two arrays have the same values, nan counted as one."""
    both_nan = xp.logical_and(xp.not_equal(lhs, lhs), xp.not_equal(rhs, rhs))
    return xp.logical_or(xp.equal(lhs, rhs), both_nan)


def _first_at_each(xp: Any, positions: Any, mask: Any, size: int) -> Any:
    """Which elements of `mask` are the first true one with their position below `size`."""
    count = math.prod(mask.shape)
    order = xp.reshape(xp.arange(count), mask.shape)
    none = xp.add(xp.zeros_indices((size,)), count)
    turns = xp.where(mask, order, xp.add(xp.zeros_indices(mask.shape), count))
    first = put_at(xp, none, positions, turns, "min")
    return xp.equal(take_at(xp, first, positions, mask.shape), order)


def _values_shape(xp: Any, out: Any, x: Any, values: Any, params: Params) -> Any:
    return values.shape


def _summary(function: str, update: str) -> str:
    return f"`{function}` with the update {update}."


def _adding(function: str) -> Op:
    return Op(
        f"{function}_add",
        Bound.COMPUTE,
        2,
        forward=_scatter("add"),
        backward=_scatter_add_gradient,
        flow=Flow.PASSED,
        flops=lambda operands, output: math.prod(operands[1]),
        note=INDICES_KEPT,
        summary=_summary(function, "add"),
    )


def _replacing(function: str) -> Op:
    return Op(
        f"{function}_assign",
        Bound.COMPUTE,
        2,
        forward=_scatter("assign"),
        backward=_scatter_assign_gradient,
        state=_values_shape,
        flops=no_flop,
        note=INDICES_KEPT,
        summary=_summary(function, "assign"),
    )


def _extreme(update: str) -> Op:
    return Op(
        f"scatter_nd_{update}",
        Bound.COMPUTE,
        2,
        forward=_scatter(update),
        backward=_scatter_extreme_gradient,
        state=lambda xp, out, x, values, params: (x, values),
        flops=lambda operands, output: math.prod(operands[1]),
        note="both operands by value, the integer indices",
        summary=_summary("scatter_nd", update),
    )


SCATTER_ADD = _adding("scatter")
SCATTER_ASSIGN = _replacing("scatter")
SCATTER_ND_ADD = _adding("scatter_nd")
SCATTER_ND_ASSIGN = _replacing("scatter_nd")
SCATTER_ND_MUL = Op(
    "scatter_nd_mul",
    Bound.COMPUTE,
    2,
    forward=_scatter("mul"),
    backward=_scatter_mul_gradient,
    state=_scatter_mul_state,
    flops=lambda operands, output: math.prod(operands[1]),
    note="each operand that the other's gradient needs, by value; the integer indices",
    summary=_summary("scatter_nd", "mul"),
)
SCATTER_ND_MIN = _extreme("min")
SCATTER_ND_MAX = _extreme("max")
_SCATTER = {"add": SCATTER_ADD, "assign": SCATTER_ASSIGN}
_SCATTER_ND = {
    "add": SCATTER_ND_ADD,
    "assign": SCATTER_ND_ASSIGN,
    "mul": SCATTER_ND_MUL,
    "min": SCATTER_ND_MIN,
    "max": SCATTER_ND_MAX,
}


@operation()
def scatter_add(x: Tensor, dim: int, indices: Any, values: Tensor) -> Tensor:
    """x with each value added at its index along `dim`."""
    return scatter(x, dim, indices, values, "add")


@operation()
def scatter(x: Tensor, dim: int, indices: Any, values: Tensor, update: str = "add") -> Tensor:
    """x with each value put at its index along `dim`; `update` is add or assign."""
    op = _op_for(_SCATTER, "scatter", update)
    return many(op, [x, values], indices_along(x, dim, indices, "scatter"))


@operation()
def scatter_nd(x: Tensor, indices: Any, values: Tensor, update: str = "add") -> Tensor:
    """x with values put where index vectors point; `update` is add, assign, mul, min or max.

    Burn's gradient of max and min judges by the old element: x = [1] and values [3, 5] at one place
    give the values [1, 1], here [0, 1].
    """
    op = _op_for(_SCATTER_ND, "scatter_nd", update)
    mask = x.node.tracked | values.node.tracked << 1
    return many(op, [x, values], (*index_vectors(x, indices, "scatter_nd"), mask))


def _op_for(ops: dict[str, Op], name: str, update: str) -> Op:
    if update not in ops:
        raise ShapeError(f"`{name}` has no update `{update}`", f"use {' or '.join(ops)}")
    return ops[update]
