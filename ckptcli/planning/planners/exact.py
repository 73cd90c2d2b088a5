"""Exact search: A* over what is done and what is resident.

First in one order of what cannot be computed twice, which is quick; then in any order, with the
first answer as what has to be undercut.
"""

from __future__ import annotations

from ckptcli.planning.dag_floor import floor_of
from ckptcli.planning.dag_order import in_any_order, in_order, spine_of
from ckptcli.planning.dag_search import DagSearch, moves_of
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.orders import freeing
from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.dag import DagProblem

MOST_RECOMPUTABLE = 40

ORDER = "the order of what is computed once"
MOST_STATES = 300_000
"""Of a search in one order: some seconds."""

MOST_STATES_IN_ANY_ORDER = 200_000
MOST_STATES_FOR_SMALLEST = 50_000


@register
class Exact(Planner):
    """The cheapest schedule there is, where it has to look at few enough states."""

    keyword = "exact"
    summary = "exact search on a dag, A* with a bound"
    guarantee = "the least cost in any order, or in one of what is computed once"
    kinds = (DagProblem.kind,)
    rank = 60

    def too_large(self, problem: DagProblem) -> str:
        count = len(set(problem.needed) - problem.once)
        if count <= MOST_RECOMPUTABLE:
            return ""
        return f"{count} values that can be computed again; it takes {MOST_RECOMPUTABLE}"

    def draft(self, problem: DagProblem, request: Request) -> Draft:
        view = DagView(problem)
        budget = view.whole_size if request.budget is None else request.budget
        searches = _Searches(view)
        search = searches.in_order(budget)
        limits: tuple[str, ...] = ()
        path, below = None, request.best_cost
        if search is not None:
            found = search.run(request.deadline.part(0.8), MOST_STATES, below)
            path = found.path
            below = found.cost if path is not None else below
            limits = (ORDER,)
        any_order = searches.in_any_order(budget)
        found = any_order.run(request.deadline, MOST_STATES_IN_ANY_ORDER, below)
        if found.path is not None or found.is_complete:
            limits = ()
            path = found.path or path
        if path is None and found.lower_bound is None and found.is_complete:
            return Draft(floor=Floor(budget + 1))
        return Draft(
            None if path is None else view.schedule(moves_of(path)),
            lower_bound=found.lower_bound,
            limits=() if found.is_complete else (request.limit, *limits),
        )

    def smallest(self, problem: DagProblem, request: Request, floor: Floor | None) -> Draft:
        view = DagView(problem)
        searches_of = _Searches(view)
        least = floor or floor_of(view, request.deadline)
        budget = least.bytes
        left = MOST_STATES_FOR_SMALLEST
        while left > 0 and not request.deadline.passed:
            searches = [searches_of.in_order(budget), searches_of.in_any_order(budget)]
            able = [search for search in searches if search is not None]
            for search in able:
                found = search.run(request.deadline, left, any_cost=True)
                left -= found.states + 1
                if found.path is not None:
                    return Draft(floor=least, min_budget=budget)
            budget = min(search.blocked or budget + 1 for search in able)
            if found.is_complete:  # the last, in any order
                least = Floor(budget)
        return Draft(floor=least, limits=(request.limit,))


class _Searches:
    """The two kinds of search in one graph."""

    def __init__(self, view: DagView) -> None:
        self._view = view
        self._once = [v for v in freeing(view) if view.is_once[v]]
        self._spine = spine_of(view)

    def in_order(self, budget: int) -> DagSearch | None:
        """In one order of what is computed once; None if everything may be computed again."""
        if not self._once:
            return None
        return DagSearch(self._view, budget, in_order(self._view, budget, self._once))

    def in_any_order(self, budget: int) -> DagSearch:
        """In any order."""
        return DagSearch(self._view, budget, in_any_order(self._view, budget, self._spine))
