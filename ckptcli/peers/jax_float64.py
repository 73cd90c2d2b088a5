"""The process that holds a function of the user's own to finite differences, in float64.

JAX decides by a switch for the whole process whether it has float64, and a file's constants are
made when it is loaded: so the file is loaded anew here, with the switch on, and all its arrays of
floating point are made float64. What it computes in float32 all the same is rough on the scale of
the steps, and the direction is then unusable; so is one along which the derivative is no more than
rounding, which a second gradient tells, of parameters one unit in the last place further on.

Invariant: stdout is one JSON object, whatever the file prints.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import CkptError
from ckptcli.measure.difference import TOLERANCE, DirectionalDifference
from ckptcli.peers.base import NoPeer
from ckptcli.peers.function_strategies import parse_function_strategy
from ckptcli.peers.jax_function import SMALLER, UserFunction, load_function
from ckptcli.peers.jax_function_rows import FunctionRows
from ckptcli.peers.jax_trial import traced
from ckptcli.verify.differences import differences_of


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
    lines = _Lines(user, rows, seed)
    found = {}
    for name in strategies:
        try:
            loss = rows.loss(parse_function_strategy(name))
        except NoPeer:
            continue
        found[name] = [asdict(along) for along in lines.beside(loss)]
    return {"directions": found}


class _Lines:
    """The loss of a function along random directions, and what rounding does to its gradient."""

    def __init__(self, user: UserFunction, rows: FunctionRows, seed: int) -> None:
        self._user = user
        self._seed = seed
        self._names = user.parameter_names()
        self._leaves = user.parameter_leaves()
        self._here = {n: _real(np.asarray(a)) for n, a in zip(self._names, self._leaves)}
        self._value = jax.jit(rows.without)
        self._known: dict[bytes, float] = {}
        plain = jax.jit(jax.grad(rows.without))
        moved = [_as_before(_next(self._here[n]), a) for n, a in zip(self._names, self._leaves)]
        rounded = [self._along(self._gradients(plain, at)) for at in (self._leaves, moved)]
        self._roundings = [_share_apart(a.gradient, b.gradient) for a, b in zip(*rounded)]

    def beside(self, loss: Any) -> list[DirectionalDifference]:
        """The gradient of the loss under a strategy beside the differences."""
        found = self._along(self._gradients(jax.jit(jax.grad(loss)), self._leaves))
        return [_along(each, rounding) for each, rounding in zip(found, self._roundings)]

    def _gradients(self, gradient: Any, parameters: Sequence[Any]) -> dict[str, Any]:
        found = gradient(parameters, self._user.other_arrays())
        return {n: _gradient(np.asarray(g)) for n, g in zip(self._names, found)}

    def _along(self, gradients: Mapping[str, Any]) -> list[DirectionalDifference]:
        return differences_of(self._here, gradients, self._loss_at, self._seed)

    def _loss_at(self, moved: Mapping[str, Any]) -> tuple[float, bytes]:
        """The loss without checkpoints; directions are the same each time, and so are places."""
        key = hashlib.sha256(b"".join(moved[name].tobytes() for name in self._names)).digest()
        if key not in self._known:
            there = [_as_before(moved[name], leaf) for name, leaf in zip(self._names, self._leaves)]
            self._known[key] = float(self._value(there, self._user.other_arrays()))
        return self._known[key], b""


def _along(found: DirectionalDifference, rounding: float) -> DirectionalDifference:
    """`rounding` is what one unit in the last place of the parameters does to the derivative."""
    reason = found.reason
    if reason is None and not found.agrees and rounding > TOLERANCE:
        reason = f"rounding alone moves the gradient by {rounding:.1e} of it"
    return replace(found, reason=reason)


def _share_apart(own: float, other: float) -> float:
    largest = max(abs(own), abs(other))
    return abs(own - other) / largest if largest else 0.0


def _next(array: Any) -> Any:
    return np.nextafter(array, np.inf)


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
