"""A good schedule of a program on the tape, of any size."""

from __future__ import annotations

from ckptcli.planning.planners.base import TIME, Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.program import UNBOUNDED_BYTES, ProgramProblem
from ckptcli.planning.tape.greedy import Greedy

PROVES_NOTHING = "a search that proves nothing"


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
        budget = UNBOUNDED_BYTES if request.budget is None else request.budget
        search = Greedy(problem.player, budget, lambda: request.deadline.passed)
        tried = search.run()
        actions = None if tried is None else tried.schedule.actions
        ended = (TIME,) if request.deadline.passed else ()
        return Draft(actions, min_budget=_least(search), limits=(PROVES_NOTHING, *ended))

    def smallest(self, problem: ProgramProblem, request: Request, floor: Floor | None) -> Draft:
        """The smallest peak of what named strategies hold, with every window."""
        search = Greedy(problem.player, 0, lambda: request.deadline.passed)
        search.run_smallest()
        return Draft(floor=floor, min_budget=_least(search))


def _least(search: Greedy) -> int | None:
    return None if search.smallest is None else search.smallest.played.peak_bytes
