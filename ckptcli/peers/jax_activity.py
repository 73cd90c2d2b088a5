"""Which values of a JAX program a gradient can flow to: those that follow from the parameters.

Invariant: a value that is left out has no derivative by a parameter. One that is named may have
none either, as a product with zero.

Source: activity analysis, as `jax.linearize` makes it with symbolic zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from ckptcli.peers.jax_evaluate import inner_programs, is_checkpoint, is_literal

STOPS = frozenset({"stop_gradient", "pure_callback", "io_callback", "debug_callback"})
"""Primitives whose outputs no gradient flows through."""

ENTERED = frozenset({"jit", "pjit", "closed_call", "core_call", "scan"})


def active_values(program: Any, parameters: int) -> set[Any]:
    """The variables that a gradient by the first so many inputs can flow to, inner ones too."""
    found: set[Any] = set()
    _visit(program, [position < parameters for position in range(len(program.invars))], found)
    return found


def _visit(program: Any, flags: Sequence[bool], found: set[Any]) -> list[bool]:
    """Whether each output is one; those inside are added to `found`."""
    found.update(v for v, flag in zip(program.invars, flags) if flag and _is_inexact(v))
    for equation in program.eqns:
        takes = [not is_literal(atom) and atom in found for atom in equation.invars]
        gives = _gives(equation, takes, found)
        found.update(v for v, flag in zip(equation.outvars, gives) if flag and _is_inexact(v))
    return [not is_literal(atom) and atom in found for atom in program.outvars]


def _gives(equation: Any, takes: list[bool], found: set[Any]) -> list[bool]:
    name, count = equation.primitive.name, len(equation.outvars)
    if not any(takes) or name in STOPS:
        return [False] * count
    if not is_checkpoint(equation) and name not in ENTERED:
        return [True] * count
    _, program = next(inner_programs(equation))
    gives = _visit(program, takes, found)
    if name == "scan":  # what a step hands on, the next one takes
        first, carried = equation.params["num_consts"], equation.params["num_carry"]
        handed = takes[first : first + carried]
        while (again := [a or b for a, b in zip(handed, gives[:carried])]) != handed:
            handed = again
            takes = [*takes[:first], *handed, *takes[first + carried :]]
            gives = _visit(program, takes, found)
    return gives


def _is_inexact(variable: Any) -> bool:
    dtype = getattr(variable.aval, "dtype", None)
    return dtype is not None and bool(jax.dtypes.issubdtype(dtype, jax.numpy.inexact))
