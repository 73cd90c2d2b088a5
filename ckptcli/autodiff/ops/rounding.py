"""Rounding: flat between steps, so memory bound, keeps nothing, gradient zero.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound


def _zero_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.zeros_like(grad)


def _rounding(name: str, forward: Callable[..., Any]) -> Op:
    return Op(name, Bound.MEMORY, 1, forward, _zero_gradient)


ROUND = _rounding("round", lambda xp, x, _: xp.round(x))
FLOOR = _rounding("floor", lambda xp, x, _: xp.floor(x))
CEIL = _rounding("ceil", lambda xp, x, _: xp.ceil(x))
TRUNC = _rounding("trunc", lambda xp, x, _: xp.trunc(x))


@operation(name="round")
def round_even(x: Tensor) -> Tensor:
    """The nearest whole number, halves to the even one."""
    return unary(ROUND, x)


@operation()
def floor(x: Tensor) -> Tensor:
    """The largest whole number that is not above x."""
    return unary(FLOOR, x)


@operation()
def ceil(x: Tensor) -> Tensor:
    """The smallest whole number that is not below x."""
    return unary(CEIL, x)


@operation()
def trunc(x: Tensor) -> Tensor:
    """The whole part, towards zero."""
    return unary(TRUNC, x)
