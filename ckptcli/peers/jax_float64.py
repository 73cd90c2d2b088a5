"""The process that holds a function of the user's own to finite differences, in float64.

JAX decides by a switch for the whole process whether it has float64, and a file's constants are
made when it is loaded: so the file is loaded anew here, with the switch on, and all its arrays of
floating point are made float64. What it computes in float32 all the same is rough on the scale of
the steps, and the direction is then unusable.

Invariant: stdout is one JSON object, whatever the file prints.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import CkptError
from ckptcli.measure.function_check import Along
from ckptcli.peers.base import NoPeer
from ckptcli.peers.function_strategies import parse_function_strategy
from ckptcli.peers.jax_function import SMALLER, UserFunction, load_function
from ckptcli.peers.jax_function_rows import FunctionRows
from ckptcli.peers.jax_trial import traced
from ckptcli.verify.differences import DirectionalDifference, differences_of


def main() -> None:
    """Read text, strategies and seed as JSON; print the directions of each, or why there are none.

    A strategy that is nothing for the function is left out.
    """
    jax.config.update("jax_enable_x64", True)
    told = json.load(sys.stdin)
    out = sys.stdout
    try:
        with running(told["text"], SMALLER):
            found = _directions(told["text"], told["strategies"], told["seed"])
    except CkptError as error:
        found = {"reason": error.message}
    json.dump(found, out)


def _directions(text: str, strategies: Sequence[str], seed: int) -> dict[str, Any]:
    user = _in_float64(load_function(text))
    rows = FunctionRows(user, traced(user))
    arrays = user.other_arrays()
    value = jax.jit(rows.without)
    names = user.parameter_names()
    here = {n: _real(np.asarray(a)) for n, a in zip(names, user.parameter_leaves())}

    def loss_at(moved: Mapping[str, Any]) -> tuple[float, bytes]:
        there = [
            _as_before(moved[name], leaf) for name, leaf in zip(names, user.parameter_leaves())
        ]
        return float(value(there, arrays)), b""

    found = {}
    for name in strategies:
        try:
            gradient = jax.jit(jax.grad(rows.loss(parse_function_strategy(name))))
        except NoPeer:
            continue
        gradients = gradient(user.parameter_leaves(), arrays)
        by_name = {n: _gradient(np.asarray(g)) for n, g in zip(names, gradients)}
        directions = differences_of(here, by_name, loss_at, seed)
        found[name] = [asdict(_along(direction)) for direction in directions]
    return {"directions": found}


def _along(found: DirectionalDifference) -> Along:
    return Along(
        gradient=found.gradient,
        difference=found.difference,
        scatter=found.scatter,
        parameters=found.parameters,
        reason=found.reason,
        agrees=found.agrees,
        apart=found.relative_error,
    )


def _in_float64(user: UserFunction) -> UserFunction:
    """The same with all arrays of floating point in double precision."""
    return replace(user, leaves=[_widened(leaf) for leaf in user.leaves])


def _widened(leaf: Any) -> Any:
    if not isinstance(leaf, jax.Array):
        return leaf
    if jax.dtypes.issubdtype(leaf.dtype, jax.numpy.complexfloating):
        return leaf.astype(jax.numpy.complex128)
    is_floating = jax.dtypes.issubdtype(leaf.dtype, jax.numpy.floating)
    return leaf.astype(jax.numpy.float64) if is_floating else leaf


def _real(array: Any) -> Any:
    """Complex numbers as pairs of real ones."""
    return np.stack([array.real, array.imag], axis=-1) if array.dtype.kind == "c" else array


def _gradient(array: Any) -> Any:
    """By real and imaginary parts; JAX's gradient by z is that by x minus i times that by y."""
    return _real(array.conj()) if array.dtype.kind == "c" else array


def _as_before(array: Any, leaf: Any) -> Any:
    """The inverse of `_real`."""
    if jax.dtypes.issubdtype(leaf.dtype, jax.numpy.complexfloating):
        return jax.numpy.asarray(array[..., 0] + 1j * array[..., 1])
    return jax.numpy.asarray(array)
