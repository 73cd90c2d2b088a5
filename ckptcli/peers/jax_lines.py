"""`remat:lines=FILE:FUNCTION`: a checkpoint around each call of a function of the user's.

While the loss is traced, the interpreter tells when the function is entered and left, and what is
traced meanwhile has the call's number in its name stack: whatever it is called through, a method, a
closure, a library that was handed it. Afterwards the equations of each call become one region.

Invariant: every equation is evaluated once, in its order; a call within a call belongs to the outer
one.

Source: `sys.setprofile`, `jax.named_scope`, `jax.checkpoint`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from types import CodeType, FrameType
from typing import Any

import jax

from ckptcli.errors import UsageError
from ckptcli.peers.function_strategies import Place
from ckptcli.peers.jax_evaluate import (
    as_written,
    bound,
    bound_with,
    equations,
    evaluate,
    has_checkpoint,
    is_checkpoint,
    is_literal,
)
from ckptcli.peers.python_calls import calls_told

MARK, PLACE = "ckpt_call_", "ckpt_place_"


class Calls:
    """Marks every call of the function at a place while it is entered as a context.

    Attributes:
        count: how many calls there were.
        others: the functions of the same file that ran.
    """

    def __init__(self, place: Place) -> None:
        self.count = 0
        self.others: set[str] = set()
        self._place = place
        self._meant: dict[CodeType, bool] = {}
        self._open: list[tuple[FrameType, AbstractContextManager[Any]]] = []

    @contextmanager
    def marked(self) -> Iterator[None]:
        """Inside, calls are marked."""
        try:
            with calls_told(self._told):
                yield
        finally:
            while self._open:
                self._open.pop()[1].__exit__(None, None, None)

    def check_found(self) -> None:
        """Refuse a place that is called nowhere.

        Raises:
            UsageError: no call.
        """
        if not self.count:
            called = ", ".join(sorted(self.others)) or "none"
            raise UsageError(
                f"`lines={self._place.file}:{self._place.function}`: the function calls no "
                f"`{self._place.function}` of that file",
                f"functions of the file that it calls: {called}",
            )

    def _told(self, frame: FrameType, event: str, argument: Any) -> None:
        del argument
        if event == "call" and self._is_meant(frame.f_code):
            self.count += 1
            scope = jax.named_scope(f"{MARK}{self.count}")
            self._open.append((frame, scope))
            scope.__enter__()
        elif event == "return" and self._open and self._open[-1][0] is frame:
            self._open.pop()[1].__exit__(None, None, None)

    def _is_meant(self, code: CodeType) -> bool:
        known = self._meant.get(code)
        if known is None:
            known = self._meant[code] = self._looked_at(code)
        return known

    def _looked_at(self, code: CodeType) -> bool:
        file = os.path.realpath(code.co_filename)
        wanted = self._place.file
        if file != os.path.realpath(wanted) and not file.endswith(os.sep + wanted):
            return False
        name = getattr(code, "co_qualname", code.co_name)
        if not name.endswith(">"):  # no comprehension, lambda or module
            self.others.add(name.rpartition("<locals>.")[2])
        return bool(name == self._place.function or name.endswith(f".{self._place.function}"))


def without_checkpoints_apart(closed: Any, arguments: Sequence[Any]) -> list[Any]:
    """The outputs of a program with its checkpoints off. JAX traces a function under a checkpoint
    once for all its calls, so that their marks are one: each place gets a name of its own.
    """
    numbers = itertools.count(1)

    def instead(equation: Any, operands: Sequence[Any]) -> Sequence[Any] | None:
        if is_checkpoint(equation):
            with jax.named_scope(f"{PLACE}{next(numbers)}"):
                return evaluate(equation.params["jaxpr"], (), operands, instead)
        return bound_with(equation, operands, has_checkpoint, flat)

    def flat(closed: Any, arguments: Sequence[Any]) -> list[Any]:
        return evaluate(closed.jaxpr, closed.consts, arguments, instead)

    return flat(closed, arguments)


def has_calls(program: Any) -> bool:
    """Whether an equation of a marked call is anywhere in a program."""
    return any(_call_of(equation) for equation in equations(program))


def evaluate_calls(closed: Any, arguments: Sequence[Any], policy: Any) -> list[Any]:
    """The outputs of a program, each marked call in it under a checkpoint with the policy."""
    program = closed.jaxpr
    values: dict[Any, Any] = dict(zip(program.constvars, closed.consts))
    values |= zip(program.invars, arguments)
    runs = [(call, list(run)) for call, run in groupby(program.eqns, key=_call_of)]
    wanted = [{atom for atom in program.outvars if not is_literal(atom)}]
    for _, run in reversed(runs):
        wanted.append(wanted[-1] | {a for e in run for a in e.invars if not is_literal(a)})
    for position, (call, run) in enumerate(runs):
        later = wanted[len(runs) - 1 - position]
        given = _inputs(run)
        made = [v for e in run for v in e.outvars if v in later]
        region = _region(run, given, made, policy)
        region = jax.checkpoint(region, policy=policy) if call else region
        values |= zip(made, region([values[variable] for variable in given]))
    return [a.val if is_literal(a) else values[a] for a in program.outvars]


def _inputs(run: Sequence[Any]) -> list[Any]:
    """The variables that a run of equations takes and does not make."""
    made = {variable for equation in run for variable in equation.outvars}
    taken = [a for e in run for a in e.invars if not is_literal(a) and a not in made]
    return list(dict.fromkeys(taken))


def _region(run: Sequence[Any], given: Sequence[Any], made: Sequence[Any], policy: Any) -> Any:
    """A run of equations as a function of the values that it takes."""

    def region(taken: Sequence[Any]) -> list[Any]:
        values: dict[Any, Any] = dict(zip(given, taken))
        for equation in run:
            operands = [a.val if is_literal(a) else values[a] for a in equation.invars]
            with as_written(equation):
                outputs = None
                if not _call_of(equation):  # what is inside of a call has its checkpoint
                    outputs = bound_with(
                        equation,
                        operands,
                        has_calls,
                        lambda closed, arguments: evaluate_calls(closed, arguments, policy),
                    )
                outputs = bound(equation, operands) if outputs is None else outputs
            values |= zip(equation.outvars, outputs)
        return [values[variable] for variable in made]

    return region


def _call_of(equation: Any) -> str:
    """The mark of the outermost call that an equation is part of, and of its place; "" for none."""
    marks = ""
    for entry in getattr(equation.source_info.name_stack, "stack", ()):
        if entry.name.startswith(MARK):
            return f"{marks}{entry.name}"
        if entry.name.startswith(PLACE):
            marks += entry.name
    return ""
