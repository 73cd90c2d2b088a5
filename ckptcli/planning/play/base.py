"""What playing a schedule gives, and how a kind of problem makes its rules known."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from ckptcli.errors import PlanError
from ckptcli.planning.actions import Action
from ckptcli.planning.problems.base import Number, Problem

Runs = Literal["tape", "program"]
"""What can execute a schedule: the tape, if no value is dropped and computed again before backward
begins, no gradient is computed twice and nothing is reordered; else a program of its own."""


@dataclass(frozen=True, slots=True)
class Played:
    """A whole schedule, played.

    Attributes:
        cost: of all evaluations, first ones included; of steps, of the advances and the disk.
        peak: the most that was resident, operands, result and workspace of an action included.
        evaluations: how many there were.
        runs: what can execute it.
        disk: the most that was on disk.
        host: the most that was in the memory of the host.
    """

    cost: Number
    peak: int
    evaluations: int
    runs: Runs
    disk: int = 0
    host: int = 0


Rules = Callable[[Any, Iterable[Action]], Played]


def play(problem: Problem, actions: Iterable[Action]) -> Played:
    """What the schedule costs and takes.

    Raises:
        PlanError: an action that the problem's rules exclude, or a goal that is not reached.
    """
    rules: Rules = importlib.import_module(f"{__package__}.{problem.kind}").play
    return rules(problem, actions)


def refuse(index: int, action: Action, why: str) -> NoReturn:
    """Action number `index` is excluded."""
    words = " ".join(map(str, action))
    raise PlanError(f"action {index} of the plan, `{words}`, is not possible: {why}")


def unknown(index: int, action: Action) -> NoReturn:
    """Action number `index` is none of this kind of problem."""
    refuse(index, action, "this kind of problem has no such action")
