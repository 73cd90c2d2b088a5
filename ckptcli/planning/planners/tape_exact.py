"""The cheapest schedule of a program on the tape, for programs of few values."""

from __future__ import annotations

from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.planners.tape_floor import floor_of
from ckptcli.planning.problems.program import UNBOUNDED_BYTES, ProgramProblem
from ckptcli.planning.tape.exact import MOST_VALUES, ExactSearch

MOST_STATES = 200_000
"""Of a search, so that the same budget gives the same plan: some seconds."""


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
        floor = floor_of(problem)
        budget = request.budget
        if not request.fits(floor.bytes):
            return Draft(floor=floor)
        most = UNBOUNDED_BYTES if budget is None else budget
        looked_at = 0

        def stop() -> bool:
            nonlocal looked_at
            looked_at += 1
            return looked_at * ExactSearch.ASKS_AFTER > MOST_STATES or request.deadline.passed

        found = ExactSearch(problem.profile, most).run(stop)
        bound = problem.base_cost + found.lower_bound
        if found.schedule is None:
            limits = () if found.is_complete else ("the number of states",)
            return Draft(floor=floor, lower_bound=bound, limits=limits)
        return Draft(found.schedule.actions, lower_bound=bound, floor=floor)
