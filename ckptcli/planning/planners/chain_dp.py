"""The dynamic program of Beaumont et al. (2019) for chains whose stages differ, with a repair."""

from __future__ import annotations

from math import gcd

from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.chain import ChainProblem

MOST_UNITS = 500
"""Memory is divided into so many units where its sizes have no larger common one."""

MOST_STAGES = 120


@register
class ChainDynamicProgram(Planner):
    """Optimal among schedules that hold what they keep, and better where its one repair helps."""

    keyword = "chain-dp"
    summary = "dynamic program on a chain, which also keeps a dear result without its cheap input"
    guarantee = "never above the least cost of schedules that hold what they keep until its use"
    kinds = (ChainProblem.kind,)
    rank = 40

    def too_large(self, problem: ChainProblem) -> str:
        if problem.stages <= MOST_STAGES:
            return ""
        return f"{problem.stages} stages; it takes {MOST_STAGES}"

    def draft(self, problem: ChainProblem, request: Request) -> Draft:
        from ckptcli.planning.chain_table import ChainTable

        whole = problem.whole_size
        budget = whole if request.budget is None else min(request.budget, whole)
        unit = _unit(problem, budget)
        units = budget // unit
        table = ChainTable(problem, units, unit)
        if table.cost(1, problem.stages, table.whole) == float("inf"):
            return Draft()
        return Draft(table.schedule)


def _unit(problem: ChainProblem, budget: int) -> int:
    """The largest unit that loses nothing, or one that makes few enough."""
    common = gcd(*problem.A, *problem.B, *problem.D, *problem.of, *problem.ob)
    common = max(1, common)
    return common if budget // common <= MOST_UNITS else -(-budget // MOST_UNITS)
