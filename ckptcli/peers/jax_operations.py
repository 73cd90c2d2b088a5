"""How many operations a program of JAX's takes, by the shapes in it.

A product and a convolution count two for each multiplication, whatever else computes something one
for each element that comes out; what only calls, names, moves or gives a shape counts nothing. The
body of a scan counts once a turn, that of another loop once.

Invariant: equations that nothing depends on do not count.

Source: `jax.lax.dot_general`, `jax.lax.conv_general_dilated`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from ckptcli.peers.jax_evaluate import inner_programs, is_literal

_CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "custom_jvp_call"}
    | {"custom_vjp_call", "custom_vjp_call_jaxpr", "scan", "while", "cond", "name"}
    | {"optimization_barrier", "reduce_precision", "broadcast_in_dim", "reshape", "squeeze"}
    | {"convert_element_type", "transpose", "copy", "pvary", "stop_gradient", "device_put"}
)
"""Primitives that compute nothing, but call, name, move or give a shape."""


def executed(program: Any) -> Iterator[tuple[Any, int]]:
    """Each equation of a `Jaxpr` that computes something, with how often it runs."""
    waiting = [(program, 1)]
    while waiting:
        current, times = waiting.pop()
        for equation in needed(current):
            inner = list(inner_programs(equation))
            if not inner and equation.primitive.name not in _CALLS:
                yield equation, times
            each = times * int(equation.params.get("length", 1) or 1)
            waiting += [(body, each) for name, body in inner if name != "jvp_jaxpr"]


def needed(program: Any) -> list[Any]:
    """The equations that some output depends on, or that do something beside it."""
    wanted = {atom for atom in program.outvars if not is_literal(atom)}
    kept = []
    for equation in reversed(program.eqns):
        if equation.effects or not wanted.isdisjoint(equation.outvars):
            kept.append(equation)
            wanted.update(atom for atom in equation.invars if not is_literal(atom))
    return kept[::-1]


def operations(program: Any) -> int:
    """How many a `Jaxpr` takes."""
    return sum(times * operations_of(equation) for equation, times in executed(program))


def operations_of(equation: Any) -> int:
    """How many one equation takes."""
    made = sum(map(_elements, equation.outvars))
    return made * _EACH.get(equation.primitive.name, _one)(equation)


def _elements(variable: Any) -> int:
    return prod(map(int, variable.aval.shape))


def _one(equation: Any) -> int:
    del equation
    return 1


def _of_a_product(equation: Any) -> int:
    (contracted, _), _ = equation.params["dimension_numbers"]
    shape = equation.invars[0].aval.shape
    return 2 * prod(int(shape[axis]) for axis in contracted)


def _of_a_convolution(equation: Any) -> int:
    kernel = equation.invars[1]
    made_by = int(kernel.aval.shape[equation.params["dimension_numbers"].rhs_spec[0]])
    return 2 * _elements(kernel) // max(1, made_by)


_EACH: dict[str, Callable[[Any], int]] = {
    "dot_general": _of_a_product,
    "conv_general_dilated": _of_a_convolution,
}
"""By primitive, how many operations an element of the result takes."""
