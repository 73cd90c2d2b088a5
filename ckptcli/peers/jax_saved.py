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
    Residuals,
)
from ckptcli.peers.jax_evaluate import equations, is_literal
from ckptcli.peers.jax_places import source_of, user_line

NAME = "name"
"""The primitive of `checkpoint_name`."""

LOOKED_THROUGH = "reduce_precision"
"""What `jax.checkpoint` puts around what it saves, so that nobody computes it in more bits."""


class Differentiable(Protocol):
    """A loss and its arguments."""

    parameters: Sequence[Any]
    x: Any

    def loss(self, parameters: Sequence[Any], x: Any) -> Any: ...


def function_residuals(program: Differentiable, names: Sequence[str] = ()) -> Residuals:
    """What is held for the gradient by the parameters, largest first.

    `names` are those of the parameters and of the arrays in `x` after them.
    """

    def forward(parameters: Sequence[Any], x: Any) -> Any:
        return jax.vjp(lambda inner: program.loss(inner, x), parameters)

    traced = jax.make_jaxpr(forward)(program.parameters, program.x).jaxpr
    found = list(_entries(traced, traced.outvars[1:], names))
    return Residuals(sorted(found, key=lambda residual: -residual.bytes))


def names_in(traced: Any) -> frozenset[str]:
    """The names that `checkpoint_name` gives in a program."""
    found = (_name_of(equation) for equation in equations(traced.jaxpr))
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
            kind = POLICY if is_policys else COMPUTED
            equation = makers[variable]
            yield _residual(kind, variable, _name_of(equation), equation)


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
    line = None if equation is None else user_line(equation)
    return Residual(
        kind=kind,
        shape=tuple(aval.shape),
        dtype=str(aval.dtype),
        bytes=int(np.prod(aval.shape)) * aval.dtype.itemsize,
        primitive="" if equation is None else equation.primitive.name,
        name=name,
        source="" if equation is None else source_of(equation),
        line="" if line is None else line.place,
        function="" if line is None else line.function,
    )
