"""Plays a dag in an order and lets go of values only where something does not fit.

What goes first has the least rank (`dag_hints.py`), and of that is used latest (Belady, 1966); what
was let go is made again when it is asked for. Time is that of the graph times the logarithm of what
is resident, and of what is computed again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush

from ckptcli.planning.dag_view import DagView
from ckptcli.planning.problems.base import Number

NEVER = 1 << 60


class Uses:
    """When each value is used, for an order of first computations.

    Attributes:
        order: every node that is needed.
        at: the places in it at which each value is an operand, ascending.
        ends: the nodes that are of no use after each place, for making others again neither.
    """

    def __init__(self, view: DagView, order: Sequence[int]) -> None:
        self.view = view
        self.order = order
        place = {v: i for i, v in enumerate(order)}
        self.at: list[list[int]] = [sorted(place[c] for c in each) for each in view.children]
        last = [-1] * len(view.size)
        self.ends: list[list[int]] = [[] for _ in order]
        for v in reversed(view.needed):
            for child in view.children[v]:
                last[v] = max(last[v], place[child], -1 if view.is_once[child] else last[child])
            if v not in view.problem.keep:
                self.ends[max(last[v], place[v])].append(v)


class Eviction:
    """One way through a dag within a budget."""

    def __init__(
        self,
        uses: Uses,
        budget: int,
        ranks: Mapping[int, int],
        held: Collection[int] | None = None,
        below: Number | None = None,
    ) -> None:
        """`held`, where given, has all that is not let go after its last use in forward; a way
        that costs `below` or more is given up.
        """
        self.moves: list[int] = []
        self.live = 0
        self._view, self._uses, self._budget = uses.view, uses, budget
        self._ranks = ranks
        self._below = below
        self._cost: Number = 0
        count = len(uses.view.size)
        self._resident = [False] * count
        self._is_done = [False] * count
        self._pins = [0] * count
        self._heap: list[tuple[int, int, int]] = []
        self._now = -1
        self._dropped = {} if held is None else _dropped(uses, held)

    def run(self) -> list[int] | None:
        """The moves, or None where something does not fit beside what it needs, or costs more."""
        for place, v in enumerate(self._uses.order):
            self._now = place
            if not self._is_done[v] and not self._make(v):
                return None
            for parent in self._view.parents[v]:
                self._note(parent)
            for gone in (*self._uses.ends[place], *self._dropped.get(place, ())):
                if self._resident[gone]:
                    self._free(gone)
        return self.moves

    def _make(self, wanted: int) -> bool:
        """Compute a node, and before it what it is made of and is not there.

        Operands stay from when they are asked for, or made, until their result is computed.
        """
        parents, resident = self._view.parents, self._resident
        todo: list[int] = []
        self._ask(todo, wanted)
        while todo:
            missing = next((p for p in parents[todo[-1]] if not resident[p]), None)
            if missing is not None:
                if self._is_done[missing] and self._view.is_once[missing]:
                    return False
                self._ask(todo, missing)
                continue
            v = todo.pop()
            if not self._compute(v):
                return False
            if todo:
                self._pins[v] += 1
        return True

    def _ask(self, todo: list[int], v: int) -> None:
        todo.append(v)
        for parent in self._view.parents[v]:
            self._pins[parent] += self._resident[parent]

    def _compute(self, v: int) -> bool:
        view = self._view
        self._cost += view.cost[v]
        if self._below is not None and self._cost >= self._below:
            return False
        if not self._has_room(view.size[v] + view.workspace[v]):
            return False
        for parent in view.parents[v]:
            self._pins[parent] -= 1
        self.moves.append(v)
        self._resident[v] = self._is_done[v] = True
        self.live += view.size[v]
        self._note(v)
        return True

    def _has_room(self, size: int) -> bool:
        """Let go of values until so much fits; False if all that may go is not enough."""
        held_back = []
        while self.live + size > self._budget and self._heap:
            entry = heappop(self._heap)
            _, minus_next, v = entry
            if not self._resident[v] or -minus_next != self._next_use(v):
                continue
            if self._pins[v] or not self._can_be_made_again(v):
                held_back.append(entry)
            else:
                self._free(v)
        for entry in held_back:
            heappush(self._heap, entry)
        return self.live + size <= self._budget

    def _can_be_made_again(self, v: int) -> bool:
        once, done, resident = self._view.is_once, self._is_done, self._resident
        return not any(once[p] and done[p] and not resident[p] for p in self._view.parents[v])

    def _next_use(self, v: int) -> int:
        at = self._uses.at[v]
        index = bisect_right(at, self._now)
        return at[index] if index < len(at) else NEVER

    def _note(self, v: int) -> None:
        """What may go has an entry for its next use."""
        if self._resident[v] and not self._view.is_once[v] and v not in self._view.problem.keep:
            heappush(self._heap, (self._ranks.get(v, 0), -self._next_use(v), v))

    def _free(self, v: int) -> None:
        self._resident[v] = False
        self.live -= self._view.size[v]
        self.moves.append(~v)


def _dropped(uses: Uses, held: Collection[int]) -> dict[int, list[int]]:
    """Of each place, what has its last use by something that may be computed again there."""
    view = uses.view
    found: dict[int, list[int]] = {}
    place = {v: i for i, v in enumerate(uses.order)}
    for v in view.needed:
        if v not in held and v not in view.problem.keep and not view.is_once[v]:
            users = [place[c] for c in view.children[v] if not view.is_once[c]]
            found.setdefault(max(users, default=place[v]), []).append(v)
    return found
