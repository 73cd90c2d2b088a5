"""Exact search on a chain of a few stages."""

from __future__ import annotations

from ckptcli.planning.chain_floor import floor_of
from ckptcli.planning.chain_search import ChainSearch, actions_of
from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.chain import ChainProblem

MOST_STAGES = 14
MOST_STATES = 200_000


@register
class ExactChain(Planner):
    """The cheapest schedule there is, where the time is enough."""

    keyword = "exact-chain"
    summary = "exact search on a chain, A* with a bound"
    guarantee = "the least cost"
    kinds = (ChainProblem.kind,)
    rank = 60

    def too_large(self, problem: ChainProblem) -> str:
        if problem.stages <= MOST_STAGES:
            return ""
        return f"{problem.stages} stages; it takes {MOST_STAGES}"

    def draft(self, problem: ChainProblem, request: Request) -> Draft:
        budget = problem.whole_size if request.budget is None else request.budget
        found = ChainSearch(problem, budget).run(request.deadline, MOST_STATES, request.best_cost)
        path = found.path
        if path is None and found.lower_bound is None and found.is_complete:
            return Draft(floor=Floor(budget + 1))
        return Draft(
            None if path is None else lambda: actions_of(path),
            lower_bound=found.lower_bound,
            limits=() if found.is_complete else (request.limit,),
        )

    def smallest(self, problem: ChainProblem, request: Request, floor: Floor | None) -> Draft:
        least = floor or floor_of(problem)
        while not request.deadline.passed:
            search = ChainSearch(problem, least.bytes)
            found = search.run(request.deadline, MOST_STATES)
            if found.path is not None:
                return Draft(floor=least, min_budget=least.bytes)
            if not found.is_complete:
                break
            least = Floor(search.blocked or least.bytes + 1)
        return Draft(floor=least, limits=(request.limit,))
