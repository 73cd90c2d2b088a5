"""Functions of each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptcli.traced.op import Op, Vjp
from ckptcli.traced.tensor import Tensor, apply, traced_op


def _function(name: str, function: str, vjp: Vjp) -> tuple[Op, Callable[[Tensor], Tensor]]:
    """The declaration, and the function of the same name as a method of `Tensor`."""

    def forward(xp: Any, x: Any) -> Any:
        return getattr(xp, function)(x)

    op = Op(name, forward, lambda shape: shape, vjp)

    def call(x: Tensor) -> Tensor:
        return apply(op, (x,))

    call.__name__ = name
    return op, traced_op()(call)


SQRT, sqrt = _function("sqrt", "sqrt", lambda g, out, x: (g * 0.5 / out,))
LN, ln = _function("ln", "log", lambda g, out, x: (g / x,))
EXP, exp = _function("exp", "exp", lambda g, out, x: (g * out,))
SIN, sin = _function("sin", "sin", lambda g, out, x: (g * x.cos(),))
COS, cos = _function("cos", "cos", lambda g, out, x: (-(g * x.sin()),))
TANH, tanh = _function("tanh", "tanh", lambda g, out, x: (g * (1.0 - out * out),))
