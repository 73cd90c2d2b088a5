"""Mixed checkpointing: a slot holds a state or the tape of a step of the same size."""

from __future__ import annotations

from ckptcli.errors import UsageError
from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.steps import StepsProblem

MOST_WORK = 500_000_000
"""Of steps squared times slots."""


@register
class Mixed(Planner):
    """Optimal where a tape takes as much as a state; x_0 takes no slot while it is live."""

    keyword = "mixed"
    summary = "equal steps where a slot holds a state or a step's tape, by a table"
    guarantee = "the least number of advances where a tape takes a slot"
    kinds = (StepsProblem.kind,)
    rank = None

    def draft(self, problem: StepsProblem, request: Request) -> Draft:
        n = problem.n
        slots = n if request.budget is None else request.budget
        if n * n * min(slots, n) > MOST_WORK:
            raise UsageError(
                f"planner `mixed` looks at {n} x {n} x {min(slots, n)} ways to begin, and at "
                f"{MOST_WORK} at most",
                "use `revolve`, which needs none",
            )
        from ckptcli.planning.mixed_table import NEVER, MixedTable

        table = MixedTable(n, slots)
        least = min(1, n - 1)
        floor = Floor(least, "store 0" if least else "")
        cost = table.cost()
        if cost >= NEVER:
            return Draft(floor=floor, min_budget=least)
        return Draft(table.schedule, lower_bound=cost - n, floor=floor, min_budget=least)
