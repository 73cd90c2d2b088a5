"""Reversing equal steps with slots in memory and on disk, where writing and reading cost."""

from __future__ import annotations

from ckptcli.errors import UsageError
from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.steps import StepsProblem

MOST_WORK = 300_000
"""Of steps times slots times disk slots."""


@register
class HRevolve(Planner):
    """Optimal for two levels of storage."""

    keyword = "hrevolve"
    summary = "equal steps with slots in memory and on disk, by a table"
    guarantee = "the least cost of advances, writes and reads"
    kinds = (StepsProblem.kind,)
    rank = 20

    def too_large(self, problem: StepsProblem) -> str:
        return "" if problem.disk else "there is no disk"

    def draft(self, problem: StepsProblem, request: Request) -> Draft:
        from ckptcli.planning.disk_table import DiskTable

        n = problem.n
        slots = min(n, n if request.budget is None else request.budget)
        work = n * slots * (problem.disk + 1)
        if work > MOST_WORK:
            raise UsageError(
                f"planner `hrevolve` needs a table of {n} steps times {slots} slots times "
                f"{problem.disk + 1}, and takes {MOST_WORK} entries",
                "plan fewer steps, each of several, or use `revolve`",
            )
        table = DiskTable(problem, slots)
        return Draft(
            table.schedule,
            lower_bound=table.cost() - n,
            floor=Floor(1, "store 0", ("0",)),
            min_budget=1,
        )
