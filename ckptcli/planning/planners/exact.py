"""Exact search: A* over what is done and what is resident.

First in one order of what cannot be computed twice, which is quick; then in any order, with the
first answer as what has to be undercut.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.planning.best_first import Found
from ckptcli.planning.dag_floor import floor_of
from ckptcli.planning.dag_search import DagSearch, State, moves_of
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.orders import freeing
from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.dag import DagProblem

MOST_RECOMPUTABLE = 40

ORDER = "the order of what is computed once"
TIME = "the time limit"


@register
class Exact(Planner):
    """The cheapest schedule there is, where the time is enough."""

    keyword = "exact"
    summary = "exact search on a dag, A* with a bound"
    guarantee = "the least cost in any order, or in one where the time limit stops it"
    kinds = (DagProblem.kind,)
    rank = 60

    def too_large(self, problem: DagProblem) -> str:
        count = len(problem.needed) - len(problem.once)
        if count <= MOST_RECOMPUTABLE:
            return ""
        return f"{count} values that can be computed again; it takes {MOST_RECOMPUTABLE}"

    def draft(self, problem: DagProblem, request: Request) -> Draft:
        view = DagView(problem)
        budget = view.whole_size if request.budget is None else request.budget
        in_order = _in_order(view, budget, request)
        below = request.best_cost if in_order.cost is None else in_order.cost
        any_order = DagSearch(view, budget).run(request.deadline, below)
        path = in_order.path if any_order.path is None else any_order.path
        if path is None and any_order.lower_bound is None and any_order.is_complete:
            return Draft(floor=Floor(budget + 1))
        return Draft(
            None if path is None else view.schedule(moves_of(path)),
            lower_bound=any_order.lower_bound,
            limits=() if any_order.is_complete else (TIME, *((ORDER,) if in_order.states else ())),
        )

    def smallest(self, problem: DagProblem, request: Request, floor: Floor | None) -> Draft:
        view = DagView(problem)
        order = _order(view)
        least = floor or floor_of(view, request.deadline)
        budget = least.bytes
        while not request.deadline.passed:
            searches = [DagSearch(view, budget)]
            if order:
                searches.insert(0, DagSearch(view, budget, order))
            for search in searches:
                found = search.run(request.deadline.part(0.5), any_cost=True)
                if found.path is not None:
                    return Draft(floor=least, min_budget=budget)
            budget = min(search.blocked or budget + 1 for search in searches)
            if found.is_complete:  # the last, in any order
                least = Floor(budget)
        return Draft(floor=least, limits=(TIME,))


def _in_order(view: DagView, budget: int, request: Request) -> Found[State]:
    """The cheapest plan in the order of what is computed once; none if everything may be again."""
    order = _order(view)
    if not order:
        return Found(None, None, None, True, 0)
    search = DagSearch(view, budget, order)
    return search.run(request.deadline.part(0.8), request.best_cost)


def _order(view: DagView) -> Sequence[int] | None:
    """The order of what is computed once; None where everything may be computed again."""
    once = [v for v in freeing(view) if view.is_once[v]]
    return once or None
