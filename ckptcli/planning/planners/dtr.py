"""Dynamic tensor rematerialisation (Kirisame et al., 2021), played with what it knows at run time.

Where something does not fit, the value goes whose making again costs least for its size and for how
long it was not used. Its neighbourhood counts: what is gone before it and after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli.planning.dag_eviction import Eviction, Uses
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.orders import freeing
from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.dag import DagProblem

MOST_NODES = 600


@register
class Dtr(Planner):
    """What a framework would do that knows nothing of what is to come."""

    keyword = "dtr"
    summary = "lets go of what is cheap, large and long unused, as at run time"
    guarantee = "nothing but the budget"
    kinds = (DagProblem.kind,)
    rank = 32

    def too_large(self, problem: DagProblem) -> str:
        if len(problem.nodes) <= MOST_NODES:
            return ""
        return f"{len(problem.nodes)} nodes; it takes {MOST_NODES}"

    def draft(self, problem: DagProblem, request: Request) -> Draft:
        view = DagView(problem)
        budget = view.whole_size if request.budget is None else request.budget
        play = Online(Uses(view, freeing(view)), budget, request.best_cost)
        moves = play.run()
        return Draft() if moves is None else Draft(view.schedule(moves))


class Online(Eviction):
    """Values are looked at anew each time; nothing is known of their next use."""

    def __init__(self, uses: Uses, budget: int, below: Number | None) -> None:
        super().__init__(uses, budget, {}, below=below)
        self._used_at = [0] * len(uses.view.size)

    def _note(self, v: int) -> None:
        self._used_at[v] = len(self.moves)

    def _has_room(self, size: int) -> bool:
        while self.live + size > self._budget:
            may_go = [v for v in self._view.needed if self._may_go(v)]
            if not may_go:
                return False
            self._free(min(may_go, key=self._worth))
        return True

    def _may_go(self, v: int) -> bool:
        is_open = self._resident[v] and not self._pins[v] and self._view.size[v] > 0
        is_kept = self._view.is_once[v] or v in self._view.problem.keep
        return is_open and not is_kept and self._can_be_made_again(v)

    def _worth(self, v: int) -> float:
        unused = len(self.moves) - self._used_at[v] + 1
        return self._cost_around(v) / (self._view.size[v] * unused)

    def _cost_around(self, v: int) -> Number:
        """Of the value, and of what is gone that leads to it or that it leads to."""
        cost = self._view.cost[v]
        for steps in (self._view.parents, self._view.children):
            seen = {v}
            todo = [v]
            while todo:
                for other in self._gone(steps[todo.pop()]):
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
                        cost += self._view.cost[other]
        return cost

    def _gone(self, nodes: Sequence[int]) -> Iterator[int]:
        """Those that were made and are gone, and can be made again."""
        done, resident, once = self._is_done, self._resident, self._view.is_once
        return (v for v in nodes if done[v] and not resident[v] and not once[v])
