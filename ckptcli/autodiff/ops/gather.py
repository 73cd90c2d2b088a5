"""Single elements and vectors by their indices: gather and scatter. All compute bound.

`scatter` and `scatter_nd` with the update "assign" or "mul" want each place at most once: with
repeated indices the gradient is Burn's, in which every update takes the whole gradient.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.apply import many, unary
from ckptcli.autodiff.op import LEFT_TRACKED, RIGHT_TRACKED, Flow, Op, no_flop
from ckptcli.autodiff.ops.indexing import INDICES_KEPT
from ckptcli.autodiff.ops.shape import positive_dim
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import along_dim, checked_indices, of_vectors, put_at, take_at
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound

Params = Any
"""(dim, indices) of gather and scatter; (None, index vectors) of the nd forms."""


def _positions(xp: Any, whole: tuple[int, ...], params: Params) -> Any:
    dim, indices = params[:2]
    if dim is None:
        return of_vectors(xp, whole, indices)
    return along_dim(xp, whole, indices, dim, indices.shape)


def _taken_shape(whole: tuple[int, ...], params: Params) -> tuple[int, ...]:
    dim, indices = params[:2]
    if dim is None:
        return (*indices.shape[:-1], *whole[indices.shape[-1] :]) or (1,)
    return tuple(indices.shape)


def _gather(xp: Any, x: Any, params: Params) -> Any:
    return take_at(xp, x, _positions(xp, x.shape, params), _taken_shape(x.shape, params))


def _gather_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    whole = xp.zeros(step.state, grad)
    return put_at(xp, whole, _positions(xp, step.state, step.params), grad, "add")


def _scatter(update: str) -> Any:
    def forward(xp: Any, x: Any, values: Any, params: Params) -> Any:
        expected = _taken_shape(x.shape, params)
        if values.shape != expected:
            raise ValueError(f"values of shape {list(expected)} are needed")
        return put_at(xp, x, _positions(xp, x.shape, params), values, update)

    return forward


def _scatter_add_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return (
        grad if step.mask & LEFT_TRACKED else None,
        _gather(xp, grad, step.params) if step.mask & RIGHT_TRACKED else None,
    )


def _scatter_assign_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    x_grad = values_grad = None
    if step.mask & RIGHT_TRACKED:
        values_grad = _gather(xp, grad, step.params)
    if step.mask & LEFT_TRACKED:
        positions = _positions(xp, grad.shape, step.params)
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
        values_grad = _gather(xp, xp.multiply(grad, x), step.params)
    if step.mask & LEFT_TRACKED:
        x_grad = put_at(xp, grad, _positions(xp, grad.shape, step.params), values, "mul")
    return x_grad, values_grad


def _scatter_extreme_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """Where the value replaced the element it gets the gradient, elsewhere the element does."""
    x, values = step.state
    wins = xp.less if step.op.name == "scatter_nd_min" else xp.greater
    replaced = wins(values, _gather(xp, x, step.params))
    taken = _gather(xp, grad, step.params)
    x_grad = values_grad = None
    if step.mask & RIGHT_TRACKED:
        values_grad = xp.where(replaced, taken, 0.0)
    if step.mask & LEFT_TRACKED:
        positions = _positions(xp, grad.shape, step.params)
        x_grad = put_at(xp, grad, positions, xp.where(replaced, 0.0, taken), "assign")
    return x_grad, values_grad


def _values_shape(xp: Any, out: Any, x: Any, values: Any, params: Params) -> Any:
    return values.shape


def _adding(name: str) -> Op:
    return Op(
        name,
        Bound.COMPUTE,
        2,
        forward=_scatter("add"),
        backward=_scatter_add_gradient,
        flow=Flow.PASSED,
        flops=lambda operands, output: math.prod(operands[1]),
        note=INDICES_KEPT,
    )


def _replacing(name: str) -> Op:
    return Op(
        name,
        Bound.COMPUTE,
        2,
        forward=_scatter("assign"),
        backward=_scatter_assign_gradient,
        state=_values_shape,
        flops=no_flop,
        note=INDICES_KEPT,
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
    )


def _taking(name: str) -> Op:
    return Op(
        name,
        Bound.COMPUTE,
        1,
        forward=_gather,
        backward=_gather_gradient,
        state=lambda xp, out, x, params: x.shape,
        flops=no_flop,
        note=INDICES_KEPT,
    )


GATHER = _taking("gather")
GATHER_ND = _taking("gather_nd")
SCATTER_ADD = _adding("scatter_add")
SCATTER_ASSIGN = _replacing("scatter_assign")
SCATTER_ND_ADD = _adding("scatter_nd_add")
SCATTER_ND_ASSIGN = _replacing("scatter_nd_assign")
SCATTER_ND_MUL = Op(
    "scatter_nd_mul",
    Bound.COMPUTE,
    2,
    forward=_scatter("mul"),
    backward=_scatter_mul_gradient,
    state=_scatter_mul_state,
    flops=lambda operands, output: math.prod(operands[1]),
    note="each operand that the other's gradient needs, by value; the integer indices",
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


def _along(x: Tensor, dim: int, indices: Any, name: str) -> tuple[int, Any]:
    axis = positive_dim(x, dim)
    array = checked_indices(x, indices, x.shape[axis], name)
    others = [(a, b) for i, (a, b) in enumerate(zip(array.shape, x.shape)) if i != axis]
    if len(array.shape) != len(x.shape) or any(a > b for a, b in others):
        raise ShapeError(
            f"`{name}` cannot use indices of shape {list(array.shape)} along dim {axis} of shape "
            f"{list(x.shape)}",
            "indices have the tensor's rank, and are not larger in any other dim",
        )
    return axis, array


def _vectors(x: Tensor, indices: Any, name: str) -> tuple[None, Any]:
    namespace = x.device.namespace
    array = namespace.asindices(indices)
    depth = array.shape[-1]
    if depth > len(x.shape):
        raise ShapeError(f"`{name}` has index vectors of {depth} for shape {list(x.shape)}")
    for axis in range(depth):
        column = namespace.take_slices(array, (..., slice(axis, axis + 1)))
        checked_indices(x, column, x.shape[axis], name)
    return None, array


@operation()
def gather(x: Tensor, dim: int, indices: Any) -> Tensor:
    """The element at each index along `dim`, in the shape of `indices`."""
    return unary(GATHER, x, _along(x, dim, indices, "gather"))


@operation()
def gather_nd(x: Tensor, indices: Any) -> Tensor:
    """The element or slice that each vector of indices (the last dim) selects."""
    return unary(GATHER_ND, x, _vectors(x, indices, "gather_nd"))


@operation()
def scatter_add(x: Tensor, dim: int, indices: Any, values: Tensor) -> Tensor:
    """X with each value added at its index along `dim`."""
    return scatter(x, dim, indices, values, "add")


@operation()
def scatter(x: Tensor, dim: int, indices: Any, values: Tensor, update: str = "add") -> Tensor:
    """X with each value put at its index along `dim`; `update` is add or assign."""
    op = _op_for(_SCATTER, "scatter", update)
    return many(op, [x, values], _along(x, dim, indices, "scatter"))


@operation()
def scatter_nd(x: Tensor, indices: Any, values: Tensor, update: str = "add") -> Tensor:
    """X with values put where index vectors point; `update` is add, assign, mul, min or max."""
    op = _op_for(_SCATTER_ND, "scatter_nd", update)
    mask = x.node.tracked | values.node.tracked << 1
    return many(op, [x, values], (*_vectors(x, indices, "scatter_nd"), mask))


def _op_for(ops: dict[str, Op], name: str, update: str) -> Op:
    if update not in ops:
        raise ShapeError(f"`{name}` has no update `{update}`", f"use {' or '.join(ops)}")
    return ops[update]
