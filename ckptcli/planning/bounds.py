"""What no plan within a budget costs less than, by kind of problem; quick, and of any size.

While an event is under way that every plan has, how much room there is for other values is known.
What later events need and does not fit there is computed again after it.
"""

from __future__ import annotations

from ckptcli.planning.dag_order import in_any_order, spine_of
from ckptcli.planning.dag_search import DagSearch
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.problems.base import Number, Problem
from ckptcli.planning.problems.dag import DagProblem
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.bound import least_again

MOST_NODES = 5_000
MOST_WORK = 15_000
MOST_PLACES = 40
"""Each place of a dag is a cut in it; of so many nodes times places."""


def lower_bound_of(problem: Problem, budget: int) -> Number | None:
    """The bound, of all that is computed; None where the planners say it themselves."""
    if isinstance(problem, ProgramProblem):
        return problem.base_cost + least_again(problem.profile, budget)
    if isinstance(problem, DagProblem):
        return _of_dag(DagView(problem), budget)
    return None


def _of_dag(view: DagView, budget: int) -> Number | None:
    """That of the exact search where it begins, at some of its places."""
    count = len(view.needed)
    if count > MOST_NODES:
        return None
    places = spine_of(view, min(MOST_PLACES, 1 + MOST_WORK // count))
    return DagSearch(view, budget, in_any_order(view, budget, places)).least()
