"""A plan: the answer to a problem and a budget, played by the rules of the problem.

Invariant: a feasible plan's peak is within its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ckptcli.planning.actions import Action
from ckptcli.planning.planners.base import Floor
from ckptcli.planning.play.base import Runs
from ckptcli.planning.problems.base import Number, Problem

SCHEMA = "ckpt.plan/1"
BUDGET = "the budget"
MOST_ACTIONS = 100_000
"""A plan of more is not written out unless that is asked for."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one planner came to.

    Attributes:
        planner: its name.
        cost, peak: of its plan; None without one.
        note: what it promises, or why it has no plan.
    """

    planner: str
    cost: Number | None
    peak: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer.

    Attributes:
        problem: what was planned.
        budget: what was allowed; None for anything.
        planner: whose plan it is; of an infeasible one, who was asked.
        feasible: whether a plan within the budget was found.
        runs: what can execute it.
        cost, peak: as played.
        host: the most that is in the memory of the host, as played.
        recomputed: the part of the cost that computing everything once does not have.
        evaluations: how many times anything is computed.
        actions: gives the schedule, anew at each call.
        length: how many actions there are, where that is known without making them.
        min_budget: the smallest budget that a plan is known for.
        min_budget_proved: whether no smaller one has a plan.
        floor: the bound that every plan is subject to, with what sets it.
        lower_bound: no plan within the budget costs less.
        proved_optimal: whether this plan costs as little as any within the budget.
        limits: what kept the answer from being better, or proved.
        saved: what is kept for backward, by name, if the planner says so.
        attempts: what each planner came to.
    """

    problem: Problem
    budget: int | None
    planner: str
    feasible: bool
    runs: Runs | None = None
    cost: Number | None = None
    peak: int | None = None
    host: int = 0
    recomputed: Number | None = None
    evaluations: int | None = None
    actions: Callable[[], Iterable[Action]] | None = None
    length: int | None = None
    min_budget: int | None = None
    min_budget_proved: bool = False
    floor: Floor | None = None
    lower_bound: Number | None = None
    proved_optimal: bool = False
    limits: tuple[str, ...] = ()
    saved: tuple[str, ...] | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def gap(self) -> Number | None:
        """How much less another plan might cost; None without a plan or a bound."""
        if self.cost is None or self.lower_bound is None:
            return None
        return 0 if self.proved_optimal else max(0, self.cost - self.lower_bound)

    @property
    def limited_by(self) -> tuple[str, ...]:
        """Why nothing cheaper is answered: the budget, and what `limits` has; none where nothing is
        computed again. Where nothing fits, what ended the search, unless the smallest budget is
        proved.
        """
        if not self.feasible:
            return () if self.min_budget_proved else self.limits
        if not self.recomputed:
            return ()
        budget = () if self.budget is None else (BUDGET,)
        return (*budget, *self.limits)
