"""Arithmetic on two tensors, which broadcast, and on a tensor and a number."""

from __future__ import annotations

from typing import Any

from ckptcli.traced.op import Op
from ckptcli.traced.ops.broadcasting import broadcast_shape, sum_to
from ckptcli.traced.tensor import Tensor, apply, traced_op


def _same_shape(shape: tuple[int, ...], *_: Any) -> tuple[int, ...]:
    return shape


ADD = Op(
    "add",
    forward=lambda xp, a, b: xp.add(a, b),
    shape=broadcast_shape,
    vjp=lambda g, out, a, b: (sum_to(g, a.shape), sum_to(g, b.shape)),
)
SUB = Op(
    "sub",
    forward=lambda xp, a, b: xp.subtract(a, b),
    shape=broadcast_shape,
    vjp=lambda g, out, a, b: (sum_to(g, a.shape), sum_to(-g, b.shape)),
)
MUL = Op(
    "mul",
    forward=lambda xp, a, b: xp.multiply(a, b),
    shape=broadcast_shape,
    vjp=lambda g, out, a, b: (sum_to(g * b, a.shape), sum_to(g * a, b.shape)),
)
DIV = Op(
    "div",
    forward=lambda xp, a, b: xp.divide(a, b),
    shape=broadcast_shape,
    vjp=lambda g, out, a, b: (sum_to(g / b, a.shape), sum_to(-(g * out) / b, b.shape)),
)
NEG = Op(
    "neg",
    forward=lambda xp, x: xp.negative(x),
    shape=_same_shape,
    vjp=lambda g, out, x: (-g,),
)
SCALE = Op(
    "scale",
    forward=lambda xp, x, factor: xp.multiply(x, factor),
    shape=_same_shape,
    vjp=lambda g, out, x, factor: (g * factor,),
)
SHIFT = Op(
    "shift",
    forward=lambda xp, x, offset: xp.add(x, offset),
    shape=_same_shape,
    vjp=lambda g, out, x, offset: (g,),
)


@traced_op("__add__", "__radd__")
def add(lhs: Tensor, rhs: Tensor | float) -> Tensor:
    """The sum."""
    if isinstance(rhs, Tensor):
        return apply(ADD, (lhs, rhs))
    return apply(SHIFT, (lhs,), (float(rhs),))


@traced_op("__sub__")
def sub(lhs: Tensor, rhs: Tensor | float) -> Tensor:
    """The difference."""
    if isinstance(rhs, Tensor):
        return apply(SUB, (lhs, rhs))
    return apply(SHIFT, (lhs,), (-float(rhs),))


@traced_op()
def __rsub__(rhs: Tensor, lhs: float) -> Tensor:
    return add(neg(rhs), lhs)


@traced_op("__mul__", "__rmul__")
def mul(lhs: Tensor, rhs: Tensor | float) -> Tensor:
    """The product, element by element."""
    if isinstance(rhs, Tensor):
        return apply(MUL, (lhs, rhs))
    return apply(SCALE, (lhs,), (float(rhs),))


@traced_op("__truediv__")
def div(lhs: Tensor, rhs: Tensor | float) -> Tensor:
    """The quotient, element by element."""
    if not isinstance(rhs, Tensor):
        rhs = lhs.tracer.constant([rhs], lhs.dtype)
    return apply(DIV, (lhs, rhs))


@traced_op()
def __rtruediv__(rhs: Tensor, lhs: float) -> Tensor:
    return div(rhs.tracer.constant([lhs], rhs.dtype), rhs)


@traced_op("__neg__")
def neg(x: Tensor) -> Tensor:
    """The negative."""
    return apply(NEG, (x,))
