"""What an op of the traced engine declares: forward, shape, and its gradient in traced ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Forward = Callable[..., Any]
"""`forward(namespace, *arrays, *params)` to an array, or to a tuple of arrays."""

ShapeRule = Callable[..., tuple[int, ...]]
"""`shape(*shapes, *params)`; raises ValueError where the operands do not fit."""

Vjp = Callable[..., tuple[Any, ...]]
"""`vjp(gradient, output, *inputs, *params)` to one traced tensor an operand, or None.

Written in traced ops, so that the gradient can be differentiated again. Where the op gives a tuple,
`gradient` maps the index of an output to its gradient.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One op. Shape rule and gradient get the operands first, then the static arguments."""

    name: str
    forward: Forward
    shape: ShapeRule
    vjp: Vjp
