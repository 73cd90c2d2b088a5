"""Segments of equal length, or of equal bytes, after Chen et al. (2016)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ckptcli.planning.chain_segments import Ends, Segments, schedule
from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.chain import ChainProblem


@register
class Chen(Planner):
    """The cheapest of all numbers of equal segments that are tried and fit."""

    keyword = "chen"
    summary = "equal segments of a chain, by stages or by bytes"
    guarantee = "every stage is made again once at most"
    kinds = (ChainProblem.kind,)
    rank = 20

    def draft(self, problem: ChainProblem, request: Request) -> Draft:
        peaks: list[int] = []
        segments = Segments(problem)

        def fitting(count: int) -> Ends | None:
            for ends in (segments.even(count), segments.even_bytes(count)):
                peaks.append(segments.peak(ends))
                if request.fits(peaks[-1]):
                    return ends
            return None

        ends = _fewest(problem.stages, fitting)
        schedule_of = None if ends is None else partial(schedule, problem, ends)
        return Draft(schedule_of, min_budget=min(peaks))


def _fewest(stages: int, fitting: Callable[[int], Ends | None]) -> Ends | None:
    """The fewest segments that fit, where that is sought by doubling and then by halving: fewer
    segments make less again.
    """
    low, high = 0, 1
    best = fitting(high)
    while best is None:
        if high == stages:
            return None
        low, high = high, min(2 * high, stages)
        best = fitting(high)
    while high - low > 1:
        middle = (low + high) // 2
        found = fitting(middle)
        if found is None:
            low = middle
        else:
            best, high = found, middle
    return best
