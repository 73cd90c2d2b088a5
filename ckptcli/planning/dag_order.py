"""What an order of the values that are computed once says in advance, for exact search in it.

While such a value is computed, how much room is left for others is known. What later ones need and
does not fit there is computed after it: `after[j]` is the least that costs, whatever is resident.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.planning.dag_view import DagView
from ckptcli.planning.problems.base import Number


class OrderBound:
    """An order within a budget.

    Attributes:
        order: the nodes that are computed once, each after all that lead to it.
        needs: of each place in it, bits of the operands that may be computed again.
        after: of each place, the least cost of what is computed again after it; nothing if it does
            not fit.
        takes: the least budget at which what is resident whatever is done fits at every place.
    """

    def __init__(self, view: DagView, budget: int, order: Sequence[int]) -> None:
        self.order = order
        self._view = view
        operands = [[p for p in view.parents[v] if not view.is_once[p]] for v in order]
        self.needs = [sum(1 << p for p in each) for each in operands]
        rooms = [
            budget - fixed - sum(view.size[p] for p in each if p not in view.problem.keep)
            for fixed, each in zip(_fixed(view, order), operands)
        ]
        self.takes = budget - min(rooms, default=0)
        self.after = self._afters(operands, rooms) if self.takes <= budget else []

    def _afters(self, operands: Sequence[Sequence[int]], rooms: Sequence[int]) -> list[Number]:
        """From the end: what a stretch needs and cannot be held at its start, and what follows."""
        count = len(operands)
        after: list[Number] = [0] * count
        for j in range(count - 2, -1, -1):
            held = {*operands[j], *self._view.problem.keep}
            wanted: set[int] = set()
            best: Number = 0
            for end in range(j + 1, count):
                added = [p for p in operands[end] if p not in held and p not in wanted]
                wanted.update(added)
                if added or end == j + 1:
                    least = self._least(wanted, rooms[j])
                best = max(best, least + after[end])
            after[j] = best
        return after

    def _least(self, wanted: set[int], room: int) -> Number:
        """The cost of the values less the most that room saves, parts of a value allowed."""
        cost, size = self._view.cost, self._view.size
        left: Number = sum(cost[v] for v in wanted)
        for v in sorted(wanted, key=lambda v: cost[v] / size[v] if size[v] else 0, reverse=True):
            if size[v] > room:
                part = cost[v] * room
                return left - (-(-part // size[v]) if isinstance(part, int) else part / size[v])
            room -= size[v]
            left -= cost[v]
        return left


def _fixed(view: DagView, order: Sequence[int]) -> list[int]:
    """What is resident whatever is done while each is computed: result and workspace, what has to
    be kept, and what was computed once and has a use that is computed once.
    """
    keep = view.problem.keep
    uses = {v: sum(view.is_once[child] for child in view.children[v]) for v in order}
    live = 0
    found = []
    for v in order:
        found.append(live + view.size[v] + view.workspace[v])
        if uses[v] or v in keep:
            live += view.size[v]
        for p in view.parents[v]:
            if view.is_once[p]:
                uses[p] -= 1
                if not uses[p] and p not in keep:
                    live -= view.size[p]
    return found
