"""Lets go of values where something does not fit, under many rankings of what is worth keeping.

The best of them is repaired: a value that is computed again at much cost is ranked higher, and the
whole is played once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ckptcli.planning.dag_eviction import Eviction, Uses
from ckptcli.planning.dag_hints import LARGE, Ranks, hints
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.orders import freeing, listed
from ckptcli.planning.planners.base import Deadline, Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.dag import DagProblem

SHARE = 0.4
"""Of the time that is left."""

HINTS_S = 0.8
REPAIR_S = 0.3
HIGHEST = 1000


@register
class Greedy(Planner):
    """Quick on graphs of any size."""

    keyword = "greedy"
    summary = "lets go of what is used latest, under rankings by cost, cuts and segments"
    guarantee = "nothing but the budget"
    kinds = (DagProblem.kind,)
    rank = 30

    def draft(self, problem: DagProblem, request: Request) -> Draft:
        view = DagView(problem)
        deadline = request.deadline.part(SHARE)
        hints_s = HINTS_S if len(view.needed) <= LARGE else deadline.left_s
        budget = view.whole_size if request.budget is None else request.budget
        found = list(_played(view, budget, Deadline(min(hints_s, deadline.left_s))))
        if not found:
            return Draft(limits=() if not deadline.passed else ("the time limit",))
        best = min(found, key=lambda way: way.cost)
        best = _repaired(view, budget, best, Deadline(min(REPAIR_S, deadline.left_s)))
        return Draft(view.schedule(best.moves))

    def smallest(self, problem: DagProblem, request: Request, floor: Floor | None) -> Draft:
        """By halving, so that it is no proof; of a large graph only where no plan fits."""
        view = DagView(problem)
        if request.best_cost is not None and len(view.needed) > LARGE:
            return Draft(floor=floor)
        low = floor.bytes if floor is not None else 0
        budget = high = view.whole_size
        moves: Sequence[int] | None = None
        while low < high and not request.deadline.passed:
            ways = _played(view, budget, request.deadline)
            way = next(ways, None)
            if way is None:
                low = budget + 1
            else:
                moves = way.moves
                high = view.peak(moves)
            budget = (low + high) // 2 if moves is not None and budget > low else low
        return Draft(floor=floor, min_budget=None if moves is None else high)


class Way:
    """One way through the graph: its moves, what it costs, and what it came from."""

    def __init__(self, view: DagView, uses: Uses, ranks: Ranks, moves: Sequence[int]) -> None:
        self.uses, self.ranks, self.moves = uses, ranks, moves
        self.cost: Number = sum(view.cost[move] for move in moves if move >= 0)


def _played(view: DagView, budget: int, deadline: Deadline) -> Iterator[Way]:
    """Every ranking in every order that there is time for, and that fits."""
    orders = [freeing(view)] if len(view.needed) > LARGE else [freeing(view), listed(view)]
    known: list[Sequence[int]] = []
    for order in orders:
        if order in known:
            continue
        known.append(order)
        uses = Uses(view, order)
        for ranks in hints(view, order, budget):
            moves = Eviction(uses, budget, ranks).run()
            if moves is not None:
                yield Way(view, uses, ranks, moves)
            if deadline.passed:
                return


def _repaired(view: DagView, budget: int, way: Way, deadline: Deadline) -> Way:
    """Rank higher what is computed again at most cost, or lower what is not, while that helps."""
    tried: set[tuple[int, int]] = set()
    while not deadline.passed:
        change = next((c for c in _changes(view, way) if c not in tried), None)
        if change is None:
            break
        tried.add(change)
        v, rank = change
        ranks: Mapping[int, int] = {**way.ranks, v: rank}
        moves = Eviction(way.uses, budget, ranks).run()
        if moves is not None:
            other = Way(view, way.uses, ranks, moves)
            if other.cost < way.cost:
                way = other
    return way


def _changes(view: DagView, way: Way) -> Iterator[tuple[int, int]]:
    """A value that is computed again to the highest rank; the dearest first."""
    times: dict[int, int] = {}
    for move in way.moves:
        if move >= 0:
            times[move] = times.get(move, 0) + 1
    again = [v for v, count in times.items() if count > 1]
    for v in sorted(again, key=lambda v: -(times[v] - 1) * view.cost[v]):
        yield v, HIGHEST
