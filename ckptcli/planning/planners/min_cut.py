"""Which values of the forward part to save: a least cut, as in PyTorch's AOTAutograd.

What backward wants is saved, or computed again of what is saved; what cannot be computed again is
saved. A cut of the graph gives the least bytes. Where computing again has a price as well, the sum
of both is a cut too; prices from nothing to much are tried where a budget is to be kept.

Nodes of `once` that lead to such nodes alone are the backward part of a dag, unless all are goals.
A dag without one is a forward part: its goals are what backward wants, nothing has a price, and a
node of `once` that is wanted has to be saved. With one, and without a budget, saving all has the
price of computing all again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli.planning.dag_eviction import Eviction, Uses
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.max_flow import Network
from ckptcli.planning.orders import freeing, moves_of
from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.dag import DagProblem

PRICES = (0, 1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
"""Of computing all again, against 256 for saving all."""

SAVED_ALL = 256
MOST_NODES = 3_000
SOURCE, SINK = 0, 1


@register
class MinCut(Planner):
    """Computes each value again once at most, as far as the budget allows."""

    keyword = "min-cut"
    summary = "which values of the forward part to save, by a least cut"
    guarantee = "the least sum of what is saved and the price of what is made again, each once"
    kinds = (DagProblem.kind,)
    rank = 35

    def too_large(self, problem: DagProblem) -> str:
        if len(problem.nodes) > MOST_NODES:
            return f"{len(problem.nodes)} nodes; it takes {MOST_NODES}"
        return "" if gradients(DagView(problem)) else "there is no backward part"

    def draft(self, problem: DagProblem, request: Request) -> Draft:
        view = DagView(problem)
        order = freeing(view)
        backward = gradients(view)
        if not backward:
            saved = saved_values(view, backward, 0)
            return Draft(view.schedule(list(moves_of(view, order))), saved=view.names(saved))
        uses = Uses(view, order)
        if request.budget is None:
            saved = saved_values(view, backward, SAVED_ALL)
            found = Eviction(uses, view.whole_size, {}, held=saved | backward).run()
            return Draft(view.schedule(found or []), saved=view.names(saved))
        ways = list(_within(view, uses, backward, request))
        if not ways:
            return Draft()
        _, best, saved = min(ways, key=lambda way: way[0])
        return Draft(view.schedule(best), saved=view.names(saved))


def gradients(view: DagView) -> frozenset[int]:
    """The backward part; empty where the dag is a forward part alone."""
    found: set[int] = set()
    for v in reversed(view.needed):
        if view.is_once[v] and all(child in found for child in view.children[v]):
            found.add(v)
    return frozenset(found if any(v not in view.problem.goals for v in found) else ())


def saved_values(view: DagView, backward: frozenset[int], price: int) -> frozenset[int]:
    """The values whose size, with the price of computing others again, is least."""
    network = Network()
    for _ in (SOURCE, SINK):
        network.vertex()
    forward = [v for v in view.needed if v not in backward]
    wanted = {v: network.vertex() for v in forward}
    again = {v: network.vertex() for v in forward}
    sizes = sum(view.size[v] for v in forward)
    costs = sum(view.cost[v] for v in forward)
    for v in forward:
        network.arc(wanted[v], again[v], SAVED_ALL * costs * view.size[v])
        network.arc(again[v], SINK, None if view.is_once[v] else price * sizes * view.cost[v])
        for parent in view.parents[v]:
            network.arc(again[v], wanted[parent], None)
    for v in _wanted(view, backward):
        network.arc(SOURCE, wanted[v], None)
    network.saturate(SOURCE, SINK)
    before = network.source_side(SINK)
    return frozenset(v for v in forward if before[wanted[v]] and not before[again[v]])


def _wanted(view: DagView, backward: frozenset[int]) -> Sequence[int]:
    """What backward wants of the forward part."""
    if not backward:
        return sorted(view.problem.goals)
    wanted = {p for v in backward for p in view.parents[v] if p not in backward}
    return sorted(wanted)


def _within(
    view: DagView, uses: Uses, backward: frozenset[int], request: Request
) -> Iterator[tuple[Number, list[int], frozenset[int]]]:
    """What each price of computing again saves, played within the budget."""
    known = set()
    for price in PRICES:
        saved = saved_values(view, backward, price)
        if saved in known or request.deadline.passed:
            continue
        known.add(saved)
        moves = Eviction(uses, request.budget or 0, dict.fromkeys(saved, 1)).run()
        if moves is not None:
            yield sum(view.cost[move] for move in moves if move >= 0), moves, saved
