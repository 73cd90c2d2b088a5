"""The dynamic program of Beaumont et al. (2019) for chains whose stages differ, with a repair."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from ckptcli.planning.chain_groups import grouped, ungrouped
from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.chain import ChainProblem

if TYPE_CHECKING:
    from ckptcli.planning.chain_table import ChainTable

MOST_UNITS = 500
"""Memory is divided into so many units where its sizes have no larger common one."""

MOST_TABLES = 3
MOST_STAGES = 80
"""A longer chain is planned as so many groups of stages."""


@register
class ChainDynamicProgram(Planner):
    """Optimal among schedules that hold what they keep, and better where its one repair helps."""

    keyword = "chain-dp"
    summary = "dynamic program on a chain, which also keeps a dear result without its cheap input"
    guarantee = (
        f"up to {MOST_STAGES} stages, at most what holding all that is kept until its use costs"
    )
    kinds = (ChainProblem.kind,)
    rank = 40

    def draft(self, problem: ChainProblem, request: Request) -> Draft:
        whole = problem.whole_size
        budget = whole if request.budget is None else min(request.budget, whole)
        ends = _ends(problem)
        table = _table(grouped(problem, ends), budget)
        if table.cost(1, len(ends), table.whole) == float("inf"):
            return Draft()
        return Draft(lambda: ungrouped(table.schedule(), ends))

    def smallest(self, problem: ChainProblem, request: Request, floor: Floor | None) -> Draft:
        """The smallest budget of a table, looked at ever closer; only where no plan fits."""
        if request.best_cost is not None:
            return Draft(floor=floor)
        groups = grouped(problem, _ends(problem))
        least = problem.whole_size
        for _ in range(MOST_TABLES):
            table = _table(groups, least)
            units = table.least()
            if units is None or units * table.unit >= least or request.deadline.passed:
                break
            least = units * table.unit
        return Draft(floor=floor, min_budget=least)


def _ends(problem: ChainProblem) -> list[int]:
    """The last stages of the groups; each stage is one where they are few."""
    count = min(problem.stages, MOST_STAGES)
    return [problem.stages * k // count for k in range(1, count + 1)]


def _table(groups: ChainProblem, budget: int) -> ChainTable:
    from ckptcli.planning.chain_table import ChainTable  # which loads NumPy

    unit = _unit(groups, budget)
    return ChainTable(groups, budget // unit, unit)


def _unit(problem: ChainProblem, budget: int) -> int:
    """The largest unit that loses nothing, or one that makes few enough."""
    common = gcd(*problem.A, *problem.B, *problem.D, *problem.of, *problem.ob)
    common = max(1, common)
    return common if budget // common <= MOST_UNITS else -(-budget // MOST_UNITS)
