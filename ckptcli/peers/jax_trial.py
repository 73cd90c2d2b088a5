"""Before a JAX function of the user's own is measured: is it a function, and has it a gradient?

It is traced twice. Two programs that differ, as with a counter or `random`, are an error: under
`jit` only the first would ever run. What happens beside the program, a print or a global that
moves, happens when it is traced and in no pass, and is told.

Invariant: nothing is computed here.

Source: JAX, "The sharp bits": pure functions.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import jax
import numpy as np

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import ProgramError, UsageError
from ckptcli.peers.jax_evaluate import equations, inner_programs, is_literal
from ckptcli.peers.jax_function import SMALLER, UserFunction
from ckptcli.peers.jax_names import unmet_names
from ckptcli.peers.jax_places import source_of
from ckptcli.peers.user_state import moved, user_state

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_PURE = (
    "take what changes as an argument, draw with a key of jax.random, and keep nothing from call "
    "to call"
)


@dataclass(frozen=True, slots=True)
class Traced:
    """The loss as a program of the parameters and the other arrays, in this order.

    Attributes:
        program: a `ClosedJaxpr`.
        notes: what a reader of its figures has to know, in sentences.
    """

    program: Any
    notes: Sequence[str]


def tried(user: UserFunction) -> Traced:
    """The function's program, after it was traced twice and its gradient once.

    Raises:
        UsageError: its loss is no real scalar, or gives its arguments' buffers away.
        ProgramError: it fails, cannot be differentiated, or is another program each time.
    """
    said = io.StringIO()
    before = user_state(user)
    program = traced(user, said)
    after = user_state(user)
    _check_traced(user, program, "inside of a function under a jit, a checkpoint or a loop")
    again = traced(user)
    _check_traced(user, again, "the call before")
    _check_same(user, program, again, moved(before, after))
    _check_buffers(user, program)
    unreached = _check_differentiable(user, program)
    notes = [
        *_notes(user, said, moved(before, after)),
        *_effects(program),
        *unreached,
    ]
    return Traced(program, notes)


def traced(
    user: UserFunction,
    said: io.StringIO | None = None,
    watching: AbstractContextManager[None] | None = None,
) -> Any:
    """The program of the loss, traced anew; `said` gets what the function prints meanwhile, and
    `watching` is entered.

    Raises:
        UsageError, ProgramError: as `tried`.
    """
    jax.clear_caches()  # an inner function that was traced before would not be called again
    with blamed(user.text), _listening(said), watching or nullcontext():
        return jax.make_jaxpr(user.scalar)(user.parameter_leaves(), user.other_arrays())


@contextmanager
def blamed(text: str) -> Iterator[None]:
    """Inside, the user's code runs; what ckpt refuses itself stays what it is.

    Raises:
        UsageError, ProgramError, OutOfMemoryError: see `running`.
    """
    try:
        with running(text, SMALLER):
            yield
    except ProgramError as error:
        if isinstance(error.__cause__, UsageError):
            raise error.__cause__ from None
        raise


class _Both(io.TextIOBase):
    """What is written goes to two places."""

    def __init__(self, one: Any, other: Any) -> None:
        self._places = (one, other)

    def write(self, text: str) -> int:
        for place in self._places:
            place.write(text)
        return len(text)


@contextmanager
def _listening(said: io.StringIO | None) -> Iterator[None]:
    if said is None:
        yield
        return
    with redirect_stdout(_Both(sys.stdout, said)):
        yield


def _check_traced(user: UserFunction, program: Any, maker: str) -> None:
    """Raises ProgramError where the program closes over a value of a trace that has ended;
    `maker` says whose.
    """
    for constant in program.consts:
        if isinstance(constant, jax.core.Tracer):
            value = f"{constant.dtype}{list(constant.shape)}"
            raise ProgramError(
                f"`{user.text}` computes with a value ({value}) that was kept from {maker}", _PURE
            )


def _check_buffers(user: UserFunction, program: Any) -> None:
    """Raises UsageError where a jitted function gives its arguments' buffers away: op by op these
    would be gone before the next pass.
    """
    for equation in equations(program.jaxpr):
        if any(equation.params.get("donated_invars", ())):
            raise UsageError(
                f"`{user.text}` donates buffers in {place_of(equation)}: every pass takes the same "
                "arrays",
                "leave out `donate_argnums` here; inside of the gradient's program JAX ignores it",
            )


def _check_same(user: UserFunction, first: Any, again: Any, moves: Sequence[str]) -> None:
    place = difference_of(first, again)
    if place is None:
        return
    because = f" ({moves[0]})" if moves else ""
    raise ProgramError(
        f"`{user.text}` is not a function: traced twice it gives two programs, which first differ "
        f"at {place}{because}",
        _PURE,
    )


def difference_of(first: Any, again: Any) -> str | None:
    """Where two programs differ, as `mul at net.py:7 (loss)`; None where they are the same."""
    for own, other in zip_longest(equations(first.jaxpr), equations(again.jaxpr)):
        if own is None or other is None or _words(own) != _words(other):
            return place_of(own if other is None else other)
    constants = zip_longest(first.consts, again.consts)
    return None if all(_bits(a) == _bits(b) for a, b in constants) else "a constant array"


def _bits(constant: Any) -> tuple[Any, ...]:
    """Shape, dtype and bytes of an array, of a key of jax.random too: nan is nan here."""
    dtype = getattr(constant, "dtype", None)
    if dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        return str(dtype), _bits(jax.random.key_data(constant))
    array = np.asarray(constant)
    return array.shape, str(array.dtype), array.tobytes()


def _words(equation: Any) -> tuple[Any, ...]:
    """What an equation is: primitive, shapes, values that stand in it, parameters."""
    programs = {name for name, _ in inner_programs(equation)}
    return (
        equation.primitive.name,
        [str(atom.aval) for atom in equation.invars],
        [np.asarray(atom.val).tobytes() for atom in equation.invars if is_literal(atom)],
        [
            (name, _ADDRESS.sub("", str(value)))
            for name, value in equation.params.items()
            if name not in programs
        ],
    )


def place_of(equation: Any) -> str:
    """`mul at net.py:7:4 (loss)`."""
    return f"`{equation.primitive.name}` at {source_of(equation)}"


def _check_differentiable(user: UserFunction, traced: Any) -> Iterator[str]:
    """Notes on parameters that no gradient reaches, and on names that no value has.

    Raises:
        ProgramError: it cannot be differentiated, or no gradient reaches any.
    """
    parameters, arrays = user.parameter_leaves(), user.other_arrays()
    try:
        with blamed(user.text):
            program = jax.make_jaxpr(jax.grad(user.scalar))(parameters, arrays)
    except ProgramError as error:
        where = error.message.removeprefix(f"`{user.text}` failed")
        if not where.startswith(" at "):  # JAX goes back through it when no line of the user's runs
            where = _loop_at(traced) + where
        raise ProgramError(f"`{user.text}` cannot be differentiated{where}", error.hint) from error
    names = user.parameter_names()
    unreached = [
        name
        for name, output in zip(names, program.jaxpr.outvars)
        if not _is_reached(output, program.jaxpr)
    ]
    if len(unreached) == len(names):
        raise ProgramError(
            f"`{user.text}` has no gradient: its loss depends on no parameter that a gradient "
            "flows to",
            "leave out stop_gradient, rounding and comparisons between parameters and loss",
        )
    told = [_unreached(user.text, unreached)] if unreached else []
    return iter([*told, *unmet_names(traced.jaxpr, program.jaxpr, user.text)])


def _loop_at(program: Any) -> str:
    """` at the `while` at net.py:7:4 (loss)`, of the first loop that floating point goes round in;
    "" where there is none.
    """
    for equation in equations(program.jaxpr):
        if equation.primitive.name == "while" and any(map(_is_inexact, equation.outvars)):
            return f" at the {place_of(equation)}"
    return ""


def _is_inexact(variable: Any) -> bool:
    return bool(jax.dtypes.issubdtype(variable.aval.dtype, jax.numpy.inexact))


def _unreached(text: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"`{text}`: no gradient flows to `{names[0]}`{more}: the loss does not use it, or only "
        "through what has no derivative"
    )


def _is_reached(output: Any, program: Any) -> bool:
    """Whether a gradient is more than zeros that JAX fills in."""
    if is_literal(output):
        return False
    makers = [e for e in program.eqns if any(v is output for v in e.outvars)]
    if len(makers) != 1 or makers[0].primitive.name != "broadcast_in_dim":
        return True
    (operand, *_) = makers[0].invars
    return not (is_literal(operand) and not np.any(np.asarray(operand.val)))


def _notes(user: UserFunction, said: io.StringIO, moves: Sequence[str]) -> Iterator[str]:
    first = next((line for line in said.getvalue().splitlines() if line.strip()), None)
    if first is not None:
        yield (
            f"`{user.text}` prints (`{first[:60]}`): under jit that happens when it is traced, not "
            "in a pass; jax.debug.print prints in each"
        )
    for move in moves:
        yield f"`{user.text}`: {move}: under jit that happens when it is traced, not in a pass"


def _effects(program: Any) -> Iterator[str]:
    calls = [e for e in equations(program.jaxpr) if "callback" in e.primitive.name]
    for name in dict.fromkeys(equation.primitive.name for equation in calls):
        found = next(equation for equation in calls if equation.primitive.name == name)
        yield f"{place_of(found)} calls Python in every pass: its time is in the figures"
