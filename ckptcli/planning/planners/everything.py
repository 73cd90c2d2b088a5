"""Everything is kept from its first use to its last: nothing is computed twice."""

from __future__ import annotations

from ckptcli.planning.actions import BACKWARD, FORWARD_ALL, KEEP
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.orders import freeing, listed, moves_of
from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.chain import ChainProblem
from ckptcli.planning.problems.dag import DagProblem
from ckptcli.planning.problems.knapsack import KnapsackProblem


@register
class Everything(Planner):
    """What needs no recomputation, in the order of two that peaks lower."""

    keyword = "everything"
    summary = "keeps everything until its last use"
    guarantee = "the least cost there is"
    kinds = (DagProblem.kind, ChainProblem.kind, KnapsackProblem.kind)
    rank = 0

    def draft(
        self, problem: DagProblem | ChainProblem | KnapsackProblem, request: Request
    ) -> Draft:
        if isinstance(problem, DagProblem):
            view = DagView(problem)
            moves = [list(moves_of(view, order(view))) for order in (listed, freeing)]
            best = min(moves, key=view.peak)
            return Draft(view.schedule(best), lower_bound=problem.base_cost)
        if isinstance(problem, ChainProblem):
            stages = range(1, problem.stages + 1)
            forward = [(FORWARD_ALL, i) for i in stages]
            backward = [(BACKWARD, i) for i in reversed(stages)]
            return Draft(lambda: [*forward, *backward], lower_bound=problem.base_cost)
        items = range(len(problem.memory))
        return Draft(lambda: [(KEEP, i) for i in items], lower_bound=problem.base_cost)
