"""Where checkpoints could be in a JAX function of the user's own, and what could be saved there.

Places are the whole function and functions of the user's that it calls again and again, once a
layer: those in which most of its operations are. What is saved goes by JAX's policies for products,
and by the names that `checkpoint_name` gives.

Invariant: nothing is computed; candidates are what `-s` of `ckpt run --function` takes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import combinations, islice
from types import FrameType
from typing import Any

from ckptcli.checkpoint.user_code import is_users_file
from ckptcli.errors import UsageError
from ckptcli.peers.function_strategies import NONE, OWN, REMAT, Place
from ckptcli.peers.jax_function import UserFunction
from ckptcli.peers.jax_operations import executed, operations, operations_of
from ckptcli.peers.jax_places import user_functions
from ckptcli.peers.jax_saved import names_in
from ckptcli.peers.jax_trial import traced
from ckptcli.peers.python_calls import calls_told
from ckptcli.planning.functions.search import Candidate

POLICIES = "jax.checkpoint_policies"
PRODUCTS = ("dots_saveable", "dots_with_no_batch_dims_saveable")
MOST_PLACES = 3
MOST_SETS = 12
"""Of names: more are not looked at."""

LEAST_SHARE = 0.1
"""Of all operations: a function in which there are fewer is no place."""


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the user's that is called: how often, and how many operations are in it."""

    place: Place
    calls: int
    operations: int


def candidates(
    user: UserFunction, program: Any, has_checkpoints: bool, only: str | None
) -> list[Candidate]:
    """What is looked at, first the function without checkpoints; `only` names a place, if any.

    Raises:
        UsageError: the function calls none of that name.
    """
    found = [Candidate(NONE)]
    found += [Candidate(OWN, OWN)] if has_checkpoints else []
    names = sorted(names_in(program.jaxpr))
    for place in [None, *_places(user, program, only)]:
        text = "" if place is None else f"{place.file}:{place.function}"
        found += _of_place(text, names)
    return found


def sets_left_out(names: Sequence[str]) -> int:
    """How many sets of names no candidate goes by."""
    return (1 << len(names)) - 1 - len(name_sets(sorted(names)))


def name_sets(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Sets of names: each alone, all, all but one, then the rest."""
    sizes = dict.fromkeys([1, len(names), len(names) - 1, *range(2, len(names) - 1)])
    sets = (chosen for size in sizes if size > 0 for chosen in combinations(names, size))
    return list(islice(sets, MOST_SETS))


def _of_place(place: str, names: Sequence[str]) -> Iterator[Candidate]:
    lines = [f"lines={place}"] if place else []
    yield Candidate(_strategy(lines), place)
    for chosen in name_sets(names):
        text = _strategy([*lines, f"names={'+'.join(chosen)}"])
        saved = ", ".join(f'"{name}"' for name in chosen)
        yield Candidate(text, place, f"{POLICIES}.save_only_these_names({saved})")
    for policy in PRODUCTS:
        text = _strategy([*lines, f"policy={policy}"])
        yield Candidate(text, place, f"{POLICIES}.{policy}")


def _strategy(arguments: Sequence[str]) -> str:
    return f"{REMAT}:{','.join(arguments)}" if arguments else REMAT


def _places(user: UserFunction, program: Any, only: str | None) -> list[Place]:
    called = _called(user, program)
    if only is not None:
        return [_named(only, called, user.text)]
    whole = operations(program.jaxpr)
    repeated = [c for c in called if c.calls > 1 and c.operations >= LEAST_SHARE * whole]
    repeated.sort(key=lambda c: (-c.operations, c.calls))
    chosen: list[Called] = []
    for this in repeated:
        if all((this.calls, this.operations) != (c.calls, c.operations) for c in chosen):
            chosen.append(this)
    return [this.place for this in chosen[:MOST_PLACES]]


def _named(text: str, called: Sequence[Called], of: str) -> Place:
    """The function that `NAME` or `FILE.py:NAME` names.

    Raises:
        UsageError: none that is called.
    """
    file, _, name = text.rpartition(":")
    for this in called:
        is_meant = this.place.function == name or this.place.function.endswith(f".{name}")
        if is_meant and (not file or this.place.file.endswith(file)):
            return this.place
    known = ", ".join(dict.fromkeys(this.place.function for this in called)) or "none"
    raise UsageError(f"`{of}` calls no function `{text}`", f"functions that it calls: {known}")


def _called(user: UserFunction, program: Any) -> list[Called]:
    """Every function of the user's that led to an equation, outer ones first."""
    counts = _Counts()
    traced(user, watching=counts.counted())
    runs: dict[int, tuple[Any, int]] = {}  # what a checkpoint or a jit made once may run often
    for equation, times in executed(program.jaxpr):
        runs[id(equation)] = equation, times + runs.get(id(equation), (None, 0))[1]
    inside: Counter[tuple[str, str]] = Counter()
    turns: dict[tuple[str, str], int] = {}
    for equation, times in runs.values():
        for function in dict.fromkeys(user_functions(equation)[::-1]):
            inside[function] += times * operations_of(equation)
            turns[function] = min(times, turns.get(function, times))
    return [
        Called(
            Place(_relative(file), name.rpartition("<locals>.")[2]),
            counts.calls[file, name] * turns[file, name],
            inside[file, name],
        )
        for file, name in inside
        if not name.endswith(">")  # a lambda has no place that a line could name
    ]


def _relative(file: str) -> str:
    """As short as it can be written from here."""
    there = os.path.relpath(file)
    return file if there.startswith(os.pardir) else there


class _Counts:
    """How often each function of the user's is called, by file and qualified name."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def counted(self) -> AbstractContextManager[None]:
        """Inside, calls are counted."""
        return calls_told(self._told)

    def _told(self, frame: FrameType, event: str, argument: Any) -> None:
        del argument
        code = frame.f_code
        if event == "call" and is_users_file(code.co_filename):
            self.calls[code.co_filename, getattr(code, "co_qualname", code.co_name)] += 1
