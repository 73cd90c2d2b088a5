"""What a planner is: a problem and a request in, a draft out.

Invariant: nothing that a draft says of cost or peak is printed before its schedule was played,
unless that is too long to play.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ckptcli.planning.actions import Action
from ckptcli.planning.problems.base import Number, Problem

TIME = "the time limit"
STATES = "the number of states that are looked at"


class Deadline:
    """When searching has to stop, whatever it has looked at; None for never."""

    def __init__(self, limit_s: float | None = None) -> None:
        self._end_s = math.inf if limit_s is None else time.monotonic() + limit_s

    @property
    def left_s(self) -> float:
        """The seconds that are left, at least 0."""
        return max(0.0, self._end_s - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether there are none left."""
        return time.monotonic() >= self._end_s

    def part(self, share: float) -> Deadline:
        """A deadline that leaves the rest of this one to others."""
        return Deadline(self.left_s * share)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a planner.

    Attributes:
        budget: the most that may be resident, in the unit of the problem; None for any.
        deadline: until when it may search.
        best_cost: the cost of a plan that is known and fits; a search may stop at it.
        best: gives the schedule of that plan; None where it has none.
    """

    budget: int | None = None
    deadline: Deadline = field(default_factory=Deadline)
    best_cost: Number | None = None
    best: Callable[[], Iterable[Action]] | None = None

    @property
    def limit(self) -> str:
        """What ended a search that is not complete."""
        return TIME if self.deadline.passed else STATES

    def fits(self, peak: int) -> bool:
        """Whether so much may be resident."""
        return self.budget is None or peak <= self.budget


@dataclass(frozen=True, slots=True)
class Floor:
    """What keeps a budget from being smaller.

    Attributes:
        bytes: the least that any plan takes, in the unit of the problem.
        where: the action at which it is needed, `compute c1`.
        values: what has to be resident then, by name, the result included.
        workspace: what the action takes beside.
    """

    bytes: int
    where: str = ""
    values: tuple[str, ...] = ()
    workspace: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """What a planner found.

    Attributes:
        actions: gives the schedule, anew at each call; None where none was found.
        length: how many actions there are, if they are too many to make without need.
        cost, peak: what the planner counts itself, for a schedule that is too long to play.
        lower_bound: no plan within the budget costs less.
        floor: no plan of any cost takes less.
        min_budget: the smallest budget that a plan is known for, where the planner looked for it.
        limits: what kept it from a better answer: "the order of gradients", "the time limit".
        saved: what is kept for backward, by name, where that is the planner's answer.
    """

    actions: Callable[[], Iterable[Action]] | None = None
    length: int | None = None
    cost: Number | None = None
    peak: int | None = None
    lower_bound: Number | None = None
    floor: Floor | None = None
    min_budget: int | None = None
    limits: tuple[str, ...] = ()
    saved: tuple[str, ...] | None = None


class Planner(ABC):
    """A way to plan.

    Attributes:
        keyword: its name on the command line.
        summary: one line on how it works.
        guarantee: what it promises, in a sentence.
        kinds: the kinds of problem that it takes.
        rank: `auto` asks planners in ascending order, quick ones first; None for never.
        starts_from_others: whether those that `auto` asks are asked before it, for a plan to
            start from.
    """

    keyword: ClassVar[str]
    summary: ClassVar[str]
    guarantee: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    rank: ClassVar[int | None] = 50
    starts_from_others: ClassVar[bool] = False

    def check_installed(self) -> None:  # noqa: B027 - most need nothing
        """Raises:
        MissingLibraryError: a library that it needs is not installed.
        """

    def too_large(self, problem: Any) -> str:
        """Why `auto` leaves the problem to others; "" if it does not."""
        return ""

    @abstractmethod
    def draft(self, problem: Any, request: Request) -> Draft:
        """A plan within the budget, or what keeps one from being.

        Raises:
            UsageError: the request lacks what this planner needs.
        """

    def smallest(self, problem: Any, request: Request, floor: Floor | None) -> Draft:
        """The smallest budget that has a plan, searched upwards from the floor that is known.

        The draft has no schedule. Most planners do not search for it.
        """
        return Draft(floor=floor)

    def takes(self, problem: Problem) -> bool:
        """Whether it is for this kind of problem."""
        return problem.kind in self.kinds
