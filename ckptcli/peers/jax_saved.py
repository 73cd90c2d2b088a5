"""What JAX holds between forward and backward of a function, entry by entry.

The forward program returns the loss and what the backward pass gets, its residuals. Each is an
argument, a constant that the function closes over, a literal, or what an equation made.

Invariant: nothing is computed. The entries are those of `jax.ad_checkpoint.print_saved_residuals`,
but that the gradient is taken by the parameters alone.

Source: `jax._src.ad_checkpoint.saved_residuals`, written anew on `jax.vjp` and `jax.make_jaxpr`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from ckptcli.measure.function_saved import (
    ARGUMENT,
    COMPUTED,
    CONSTANT,
    LITERAL,
    POLICY,
    Residual,
)
from ckptcli.peers.jax_evaluate import equations, is_literal
from ckptcli.peers.jax_places import Line, source_of, user_line

NAME = "name"
"""The primitive of `checkpoint_name`."""

SAME_OUTPUTS = {"jit": "jaxpr", "pjit": "jaxpr", "scan": "jaxpr", "closed_call": "call_jaxpr"}
"""Primitives whose outputs are those of a program inside, and where that is."""

LOOKED_THROUGH = "reduce_precision"
"""What `jax.checkpoint` puts around what it saves, so that nobody computes it in more bits."""


class Differentiable(Protocol):
    """A loss and its arguments."""

    parameters: Sequence[Any]
    x: Any

    def loss(self, parameters: Sequence[Any], x: Any) -> Any: ...


def function_residuals(program: Differentiable, names: Sequence[str] = ()) -> list[Residual]:
    """What is held for the gradient by the parameters, largest first.

    `names` are those of the parameters and of the arrays in `x` after them.
    """

    def forward(parameters: Sequence[Any], x: Any) -> Any:
        return jax.vjp(lambda inner: program.loss(inner, x), parameters)

    traced = jax.make_jaxpr(forward)(program.parameters, program.x).jaxpr
    found = list(_entries(traced, traced.outvars[1:], names))
    return sorted(found, key=lambda residual: -residual.bytes)


def names_in(program: Any) -> frozenset[str]:
    """The names that `checkpoint_name` gives in a `Jaxpr`."""
    found = (_name_of(equation) for equation in equations(program))
    return frozenset(name for name in found if name)


def _entries(traced: Any, outputs: Sequence[Any], names: Sequence[str]) -> Iterator[Residual]:
    makers = {variable: e for e in traced.eqns for variable in e.outvars}
    arguments = {variable: position for position, variable in enumerate(traced.invars)}
    constants = set(traced.constvars)
    seen = set()
    for output in outputs:
        if is_literal(output):
            yield _residual(LITERAL, output)
            continue
        is_policys = _is_looked_through(makers.get(output))
        variable = makers[output].invars[0] if is_policys else output
        if variable in seen:
            continue
        seen.add(variable)
        if variable in arguments:
            position = arguments[variable]
            name = names[position] if position < len(names) else ""
            yield _residual(ARGUMENT, variable, name)
        elif variable in constants:
            yield _residual(CONSTANT, variable)
        else:
            yield _residual(POLICY if is_policys else COMPUTED, variable, "", makers[variable])


def _is_looked_through(equation: Any) -> bool:
    return (
        equation is not None
        and equation.primitive.name == LOOKED_THROUGH
        and not is_literal(equation.invars[0])
    )


def _name_of(equation: Any) -> str:
    return str(equation.params["name"]) if equation.primitive.name == NAME else ""


def _residual(kind: str, variable: Any, name: str = "", equation: Any = None) -> Residual:
    aval = variable.aval
    calls, inner = ([], None) if equation is None else _inside(equation, variable)
    lines = [
        line for made in (inner, *calls[::-1]) if made is not None if (line := user_line(made))
    ]
    line = lines[0] if lines else Line("", "")
    return Residual(
        kind=kind,
        shape=tuple(aval.shape),
        dtype=str(aval.dtype),
        bytes=int(np.prod(aval.shape)) * aval.dtype.itemsize,
        primitive="" if inner is None else inner.primitive.name,
        within=", ".join(map(_call, calls)),
        name=name if inner is None else _name_of(inner),
        source="" if equation is None else source_of(equation),
        line=line.place,
        function=line.function,
    )


def _inside(equation: Any, variable: Any) -> tuple[list[Any], Any]:
    """The calls and loops around what makes an output of an equation, and that itself."""
    calls: list[Any] = []
    while equation.primitive.name in SAME_OUTPUTS:
        program = equation.params[SAME_OUTPUTS[equation.primitive.name]].jaxpr
        inner = program.outvars[equation.outvars.index(variable)]
        makers = {made: e for e in program.eqns for made in e.outvars}
        if is_literal(inner) or inner not in makers:  # handed through
            break
        calls.append(equation)
        equation, variable = makers[inner], inner
        if _is_looked_through(equation) and equation.invars[0] in makers:
            variable = equation.invars[0]
            equation = makers[variable]
    return calls, equation


def _call(equation: Any) -> str:
    """`jit loss`, `scan`."""
    name = equation.params.get("name", "")
    return f"{equation.primitive.name} {name}".strip()
