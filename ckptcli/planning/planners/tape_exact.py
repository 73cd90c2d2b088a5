"""The cheapest schedule of a program on the tape, for programs of few values."""

from __future__ import annotations

from collections.abc import Callable

from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.program import UNBOUNDED_BYTES, ProgramProblem
from ckptcli.planning.tape.exact import MOST_VALUES, ExactSearch

MOST_STATES = 200_000
"""Of a search, so that the same budget gives the same plan: some seconds."""

STATES_FOR_SMALLEST = 20_000
"""Of the question whether the floor itself is enough."""


@register
class TapeExact(Planner):
    """A* in the order of gradients."""

    keyword = "tape-exact"
    summary = "A* over backward steps and resident values, up to about 25 values"
    guarantee = "the cheapest in the order of gradients"
    kinds = (ProgramProblem.kind,)
    rank = 10

    def too_large(self, problem: ProgramProblem) -> str:
        values = len(problem.model.values)
        return f"{values} values are too many" if values > MOST_VALUES else ""

    def draft(self, problem: ProgramProblem, request: Request) -> Draft:
        """A schedule, or the proof that there is none, or neither within the limits."""
        budget = UNBOUNDED_BYTES if request.budget is None else request.budget
        search = ExactSearch(problem.profile, budget)
        found = search.run(_after(MOST_STATES, request))
        bound = problem.base_cost + found.lower_bound
        if found.schedule is None:
            limits = () if found.is_complete else (request.limit,)
            return Draft(lower_bound=bound, limits=limits)
        return Draft(found.schedule.actions, lower_bound=bound)

    def smallest(self, problem: ProgramProblem, request: Request, floor: Floor | None) -> Draft:
        """Whether the floor itself is enough."""
        if floor is None:
            return Draft()
        search = ExactSearch(problem.profile, floor.bytes)
        found = search.run(_after(STATES_FOR_SMALLEST, request))
        return Draft(floor=floor, min_budget=floor.bytes if found.schedule else None)


def _after(most_states: int, request: Request) -> Callable[[], bool]:
    """Whether to stop: after so many states, or at the deadline."""
    looked_at = 0

    def stop() -> bool:
        nonlocal looked_at
        looked_at += ExactSearch.ASKS_AFTER
        return looked_at > most_states or request.deadline.passed

    return stop
