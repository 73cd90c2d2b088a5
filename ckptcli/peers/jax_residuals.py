"""What JAX holds for the backward pass and computes again in it, from its programs.

The forward program returns the loss and the residuals: its outputs that are not its inputs are
what is saved. The backward program is what the residuals are fed to: each product in it beyond the
gradient's own is computed again. Both are counted in the program that JAX traces, before a compiler
fuses or drops anything. A loop (`lax.scan`) holds a residual of its body stacked over its turns, in
one array with the bytes of all, and what its body computes runs once a turn.

Source: public functions alone, `jax.vjp`, `jax.make_jaxpr`, `jax.eval_shape`; that the function
which `jax.vjp` returns is a pytree of its residuals is documented there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Residuals:
    """Bytes and number of the residuals, and the backward program's primitives by name."""

    saved_bytes: int
    saved_tensors: int
    backward_calls: Counter[str]


def residuals(loss: Callable[[Any, Any], Any], weights: Sequence[Any], x: Any) -> Residuals:
    """Trace `loss` and its gradient by the weights; nothing is computed."""
    import jax

    def forward(weights: Sequence[Any], x: Any) -> Any:
        return jax.vjp(lambda inner: loss(inner, x), weights)

    forward_program = jax.make_jaxpr(forward)(weights, x).jaxpr
    value, pull_back = jax.eval_shape(forward, weights, x)
    saved = _new_outputs(forward_program, besides=1)
    leaves, tree = jax.tree_util.tree_flatten(pull_back)

    def backward(leaves: Sequence[Any], cotangent: Any) -> Any:
        return jax.tree_util.tree_unflatten(tree, leaves)(cotangent)

    program = jax.make_jaxpr(backward)(leaves, value)
    sizes = [int(np.prod(v.aval.shape)) * v.aval.dtype.itemsize for v in saved]
    return Residuals(sum(sizes), len(sizes), primitive_calls(program.jaxpr))


def _new_outputs(program: Any, besides: int) -> list[Any]:
    """The outputs after the first `besides`, each once; inputs and literals are none."""
    outputs = program.outvars
    others = {id(v) for v in (*program.invars, *program.constvars, *outputs[:besides])}
    variables = []
    for variable in outputs[besides:]:
        if id(variable) not in others and not hasattr(variable, "val"):
            others.add(id(variable))
            variables.append(variable)
    return variables


def primitive_calls(program: Any) -> Counter[str]:
    """How often each primitive of a program (a jaxpr) runs, by name.

    Inner programs are included, the body of a `scan` once for each of its turns. How often a
    `while` runs is not known before it does: its body counts once.
    """
    calls: Counter[str] = Counter()
    programs = [(program, 1)]
    while programs:
        current, times = programs.pop()
        for equation in current.eqns:
            calls[equation.primitive.name] += times
            turns = equation.params["length"] if equation.primitive.name == "scan" else 1
            programs.extend((inner, times * turns) for inner in _inner(equation))
    return calls


def _inner(equation: Any) -> Iterator[Any]:
    for parameter in equation.params.values():
        for item in parameter if isinstance(parameter, tuple | list) else [parameter]:
            program = getattr(item, "jaxpr", item)
            if hasattr(program, "eqns"):
                yield program
