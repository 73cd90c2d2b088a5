"""The plan of a program for a budget: the best of the planners' and of the named strategies.

Invariant: a plan costs no more than any named strategy that fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ckptcli import units
from ckptcli.errors import PlanError
from ckptcli.planning.device_limit import DeviceLimit
from ckptcli.planning.making import make_plan
from ckptcli.planning.plan import Attempt, Plan
from ckptcli.planning.planners.base import Deadline, Request
from ckptcli.planning.planners.registry import AUTO
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.plan_file import TapePlan
from ckptcli.planning.tape.program import loaded_count, program_made
from ckptcli.planning.tape.reasons import schedule_reasons
from ckptcli.planning.tape.schedule import schedule_of

ORDER = "the order of the tape's gradients"
"""A flat program may have another, and what its plans cost nobody looks at."""

UNHURRIED = Deadline()
"""Searches end by what they have looked at, so that the same budget gives the same plan."""


@dataclass(frozen=True, slots=True)
class Named:
    """A named strategy on a program, as the engine plays it.

    Attributes:
        name: as on the command line.
        peak_bytes, ledger_bytes: above parameters and input, with the workspace of kernels and
            without.
        held_bytes: what is live after the forward pass.
        again: node -> how often it is computed again.
    """

    name: str
    peak_bytes: int
    ledger_bytes: int
    held_bytes: int
    again: Mapping[int, int]

    def cost(self, problem: ProgramProblem) -> Number:
        """Of its forward pass and of what it computes again."""
        costs = problem.model.costs
        return problem.base_cost + sum(costs[node] * n for node, n in self.again.items())

    def time_s(self, problem: ProgramProblem) -> float | None:
        """Predicted seconds of a pass, without what opening and closing regions takes; None where
        the program was not timed.
        """
        return problem.time_s(node for node, n in self.again.items() for _ in range(n))


@dataclass(frozen=True)
class Choice:
    """A plan, and what executes it.

    Attributes:
        problem: what was planned.
        plan: the answer, feasible or not.
        tape: what executes it; None where nothing fits.
        named: the named strategies beside it.
        limit: the device whose memory leaves the budget; None where a budget was given.
    """

    problem: ProgramProblem
    plan: Plan
    tape: TapePlan | None
    named: Sequence[Named]
    limit: DeviceLimit | None = None

    def reasons(self) -> tuple[str, ...]:
        """Why each value is held or moved, and what is computed again, for people."""
        if self.tape is None:
            return ()
        if self.tape.schedule is None:
            named = f"the strategy `{self.tape.strategy}`"
            return (f"{named} is the cheapest that was found within the budget",)
        return tuple(schedule_reasons(self.problem, self.tape.schedule))

    @property
    def limited_by(self) -> tuple[str, ...]:
        """Why nothing cheaper is answered, as of the plan; of one that fits the order too."""
        found = self.plan.limited_by
        return (*found, ORDER) if found and self.plan.feasible else found

    @cached_property
    def time_s(self) -> float | None:
        """Predicted seconds of a pass of the plan; None without a plan, or where the program was
        not timed. Moves are in it where costs are times.
        """
        if self.tape is None:
            return None
        if self.tape.schedule is not None:
            return self.problem.schedule_time_s(self.tape.schedule)
        return next(n.time_s(self.problem) for n in self.named if n.name == self.tape.strategy)


def choose(
    problem: ProgramProblem,
    budget_bytes: int | None,
    named: Sequence[Named],
    planner: str = AUTO,
    deadline: Deadline = UNHURRIED,
) -> Choice:
    """The cheapest plan within the budget; ties hold rather than compute again."""
    plan = make_plan(problem, Request(budget_bytes, deadline), planner)
    plan = _with_least_of(problem, plan, named)
    graph = problem.graph
    program, loaded = program_made(graph), loaded_count(graph)
    best = _best(problem, [n for n in named if _fits(problem, n, budget_bytes)])
    if best is not None and (not plan.feasible or best.cost(problem) < (plan.cost or 0)):
        plan = _named_plan(problem, plan, best)
        return Choice(problem, plan, TapePlan(None, best.name, program, loaded), named)
    if plan.actions is None:
        return Choice(problem, plan, None, named)
    schedule = schedule_of(plan.actions())
    return Choice(problem, plan, TapePlan(schedule, "", program, loaded), named)


def check_feasible(choice: Choice) -> TapePlan:
    """What executes the plan.

    Raises:
        PlanError: nothing fits; with the smallest budget that does, and what sets it.
    """
    if choice.tape is not None:
        return choice.tape
    plan = choice.plan
    allowed = units.exact_size(plan.budget)
    hint = None
    if plan.min_budget is not None:
        hint = f"the smallest budget that is known to be enough is {plan.min_budget} bytes"
    floor = plan.floor
    sets = f": {floor.where} needs {floor.bytes} bytes" if floor is not None else ""
    raise PlanError(f"no plan of {choice.problem.graph.title} fits in {allowed}{sets}", hint)


def _peak(problem: ProgramProblem, named: Named) -> int:
    return named.peak_bytes if problem.with_workspace else named.ledger_bytes


def _fits(problem: ProgramProblem, named: Named, budget_bytes: int | None) -> bool:
    return budget_bytes is None or _peak(problem, named) <= budget_bytes


def _best(problem: ProgramProblem, fitting: Sequence[Named]) -> Named | None:
    def merit(named: Named) -> tuple[Number, int, int]:
        return named.cost(problem), sum(named.again.values()), _peak(problem, named)

    return min(fitting, key=merit, default=None)


def _with_least_of(problem: ProgramProblem, plan: Plan, several: Sequence[Named]) -> Plan:
    """With the smallest budget among these strategies too. Regions may take less than any schedule:
    then what schedules do not get below is none of all plans.
    """
    peaks = [_peak(problem, named) for named in several]
    known = [*peaks, *([] if plan.min_budget is None else [plan.min_budget])]
    if not known:
        return plan
    least = min(known)
    floor = plan.floor if plan.floor is not None and plan.floor.bytes <= least else None
    is_proved = floor is not None and floor.bytes == least
    return replace(plan, min_budget=least, min_budget_proved=is_proved, floor=floor)


def _named_plan(problem: ProgramProblem, plan: Plan, named: Named) -> Plan:
    """The plan that is a named strategy."""
    cost = named.cost(problem)
    keyword = f"strategy {named.name}"
    attempt = Attempt(keyword, cost, _peak(problem, named), "as the engine plays it")
    is_bound = plan.lower_bound is not None and plan.lower_bound <= cost
    return replace(
        plan,
        planner=keyword,
        feasible=True,
        runs="tape",
        cost=cost,
        peak=_peak(problem, named),
        recomputed=cost - problem.base_cost,
        evaluations=None,
        actions=None,
        length=None,
        saved=None,
        lower_bound=plan.lower_bound if is_bound else None,
        proved_optimal=is_bound and cost == plan.lower_bound,
        attempts=(*plan.attempts, attempt),
    )
