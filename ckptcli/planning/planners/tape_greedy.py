"""A good schedule of a program on the tape, of any size."""

from __future__ import annotations

from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.planners.tape_floor import floor_of
from ckptcli.planning.problems.program import UNBOUNDED_BYTES, ProgramProblem
from ckptcli.planning.tape.greedy import Greedy


@register
class TapeGreedy(Planner):
    """Sets of held values, by cost per byte, from what every named strategy holds."""

    keyword = "tape-greedy"
    summary = "thins and grows what named strategies hold by cost per byte, with windows"
    guarantee = "at most what the sets of named strategies cost as plans"
    kinds = (ProgramProblem.kind,)
    rank = 20

    def draft(self, problem: ProgramProblem, request: Request) -> Draft:
        """A schedule within the budget, or the smallest that was found."""
        floor = floor_of(problem)
        budget = UNBOUNDED_BYTES if request.budget is None else request.budget
        search = Greedy(problem.player, budget, lambda: request.deadline.passed)
        if request.fits(floor.bytes):
            tried = search.run()
        else:
            tried = None
            search.run_smallest()
        smallest = search.smallest
        least = None if smallest is None else smallest.played.peak_bytes
        actions = None if tried is None else tried.schedule.actions
        return Draft(actions, floor=floor, min_budget=least, limits=("the search is greedy",))
