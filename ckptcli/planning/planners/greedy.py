"""Lets go of values where something does not fit, under many rankings of what is worth keeping.

The best of them is repaired: a value that is computed again at much cost is ranked higher, and the
whole is played once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ckptcli.planning.dag_eviction import Eviction, Uses
from ckptcli.planning.dag_hints import Ranks, hints
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.orders import freeing, listed, moves_of
from ckptcli.planning.planners.base import Deadline, Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.dag import DagProblem

LARGE = 5_000
FEW = 4
"""A graph of so many nodes is played under so many rankings."""

MOST_MOVES_OF_REPAIRS = 100_000
MOST_HALVINGS = 8
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
        budget = view.whole_size if request.budget is None else request.budget
        most = FEW if len(view.needed) > LARGE else None
        found = list(_played(view, budget, request.deadline, most))
        if not found:
            return Draft(limits=(request.limit,) if request.deadline.passed else ())
        best = _repaired(view, budget, found[-1], request.deadline)
        return Draft(view.schedule(best.moves))

    def smallest(self, problem: DagProblem, request: Request, floor: Floor | None) -> Draft:
        """By halving, so that it is no proof; of a large graph only where no plan fits."""
        view = DagView(problem)
        if request.best_cost is not None and len(view.needed) > LARGE:
            return Draft(floor=floor)
        low = floor.bytes if floor is not None else 0
        budget, least = low, None
        for _ in range(MOST_HALVINGS):
            way = next(_played(view, budget, request.deadline, FEW), None)
            if way is not None:
                least = view.peak(way.moves)
            elif least is None:
                least = view.peak(list(moves_of(view, freeing(view))))
            if way is None:
                low = budget + 1
            if low >= least or request.deadline.passed:
                break
            budget = (low + least) // 2
        return Draft(floor=floor, min_budget=least)


class Way:
    """One way through the graph: its moves, what it costs, and what it came from."""

    def __init__(self, view: DagView, uses: Uses, ranks: Ranks, moves: Sequence[int]) -> None:
        self.uses, self.ranks, self.moves = uses, ranks, moves
        self.cost: Number = sum(view.cost[move] for move in moves if move >= 0)


def _played(
    view: DagView, budget: int, deadline: Deadline, most: int | None = None
) -> Iterator[Way]:
    """Ways that fit, each cheaper than the one before: of every ranking in every order, or of the
    first few in one.
    """
    orders = [freeing(view)] if most else [freeing(view), listed(view)]
    known: list[Sequence[int]] = []
    below: Number | None = None
    for order in orders:
        if order in known:
            continue
        known.append(order)
        uses = Uses(view, order)
        for ranks in islice(hints(view, order, budget), most):
            moves = Eviction(uses, budget, ranks, below=below).run()
            if moves is not None:
                way = Way(view, uses, ranks, moves)
                below = way.cost
                yield way
            if deadline.passed:
                return


def _repaired(view: DagView, budget: int, way: Way, deadline: Deadline) -> Way:
    """Rank higher what is computed again at most cost, or lower what is not, while that helps."""
    tried: set[tuple[int, int]] = set()
    left = MOST_MOVES_OF_REPAIRS
    while left > 0 and not deadline.passed:
        change = next((c for c in _changes(view, way) if c not in tried), None)
        if change is None:
            break
        tried.add(change)
        left -= len(way.moves)
        v, rank = change
        ranks: Mapping[int, int] = {**way.ranks, v: rank}
        moves = Eviction(way.uses, budget, ranks, below=way.cost).run()
        if moves is not None:
            way = Way(view, way.uses, ranks, moves)
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
