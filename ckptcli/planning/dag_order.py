"""What is known in advance of what will be computed again, for exact search on a dag.

While something is computed that is computed once, how much room is left for other values is known:
in a given order exactly, in any order by a bound. What later ones need and does not fit there is
computed after it, whatever is resident.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ckptcli.planning.dag_floor import least_at
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.problems.base import Number
from ckptcli.planning.room import least_beside


@dataclass(frozen=True, slots=True)
class Place:
    """A node that is computed once, on the way to others.

    Attributes:
        node: its index.
        before: bits of what is computed once and done when it is, itself included.
        takes: what is resident while it is computed, whatever is done.
    """

    node: int
    before: int
    takes: int


class Stretches:
    """Places, each of which all that leads to the one before leads to.

    Attributes:
        order: the only order in which these may be computed; None for any.
        takes: the least budget at which what is resident whatever is done fits at every place.
    """

    def __init__(
        self,
        view: DagView,
        budget: int,
        places: Sequence[Place],
        follows: Sequence[int],
        order: Sequence[int] | None = None,
    ) -> None:
        """`follows` has bits of what is computed once after each place, and of nothing else."""
        self.order = order
        self.takes = max((place.takes for place in places), default=0)
        self._view, self._places, self._follows = view, places, follows
        self._operands = {
            v: [p for p in view.parents[v] if not view.is_once[p]]
            for v in view.needed
            if view.is_once[v]
        }
        self._needs = {v: sum(1 << p for p in each) for v, each in self._operands.items()}
        self._after: list[Number] = []
        if self.takes <= budget:
            self._after = self._afters([budget - place.takes for place in places])

    def left(self, done: int, wanted: int) -> list[tuple[int, Number]]:
        """The operands that are wanted up to each place that is not done, with the least cost of
        what is computed again after it; the last has all.
        """
        found: list[tuple[int, Number]] = []
        for place, after in zip(self._places, self._after):
            if not done >> place.node & 1:
                needs = 0
                for v in _nodes(place.before & ~done):
                    needs |= self._needs[v]
                found.append((needs & wanted, after))
        kept = [each for each, (_, later) in pairwise(found) if each[1] > later]
        return [*kept, (wanted, 0)]

    def _afters(self, rooms: Sequence[int]) -> list[Number]:
        """From the end: what a stretch needs and cannot be held at its start, and what follows."""
        count = len(self._places)
        after: list[Number] = [0] * count
        for i in range(count - 2, -1, -1):
            # the first computation of a goal is counted already, and may be the one after
            held = {*self._operands[self._places[i].node], *self._view.problem.goals}
            wanted: set[int] = set()
            seen = 0
            least: Number = 0
            for j in range(i + 1, count):
                between = self._follows[i] & self._places[j].before & ~seen
                seen |= between
                added = {p for v in _nodes(between) for p in self._operands[v]} - held - wanted
                if added:
                    wanted |= added
                    least = self._least(wanted, rooms[i])
                after[i] = max(after[i], least + after[j])
        return after

    def _least(self, wanted: set[int], room: int) -> Number:
        cost, size = self._view.cost, self._view.size
        return least_beside([(cost[v], size[v]) for v in wanted], room)


def in_order(view: DagView, budget: int, order: Sequence[int]) -> Stretches:
    """Of all that is computed once, in this order."""
    places, before = [], 0
    for v, fixed in zip(order, _fixed(view, order)):
        before |= 1 << v
        own = sum(
            view.size[p]
            for p in view.parents[v]
            if not view.is_once[p] and p not in view.problem.keep
        )
        places.append(Place(v, before, fixed + own))
    return Stretches(view, budget, places, [before & ~place.before for place in places], order)


def in_any_order(view: DagView, budget: int, spine: Sequence[Place]) -> Stretches:
    """Of the longest way through what is computed once."""
    ancestors = _ancestors(view)
    once = [v for v in view.needed if view.is_once[v]]
    follows = [sum(1 << v for v in once if ancestors[v] >> place.node & 1) for place in spine]
    return Stretches(view, budget, spine, follows)


def spine_of(view: DagView, most: int | None = None) -> list[Place]:
    """The longest way through what is computed once, at most so many places of it, each with its
    bound in any order.
    """
    depth = [0] * len(view.size)
    latest = [-1] * len(view.size)
    for v in view.needed:
        for p in view.parents[v]:
            if depth[p] > depth[v] or latest[v] < 0:
                depth[v], latest[v] = depth[p], p if view.is_once[p] else latest[p]
        depth[v] += view.is_once[v]
    v = max((v for v in view.needed if view.is_once[v]), key=lambda v: depth[v], default=-1)
    nodes = []
    while v >= 0:
        nodes.append(v)
        v = latest[v]
    nodes.reverse()
    if most is not None and len(nodes) > most:
        nodes = [nodes[len(nodes) * i // most] for i in range(most)]
    ancestors = _ancestors(view)
    return [Place(v, ancestors[v] | 1 << v, least_at(view, v).bytes) for v in nodes]


def _ancestors(view: DagView) -> list[int]:
    """Bits of what is computed once and leads to each node."""
    found = [0] * len(view.size)
    for v in view.needed:
        for p in view.parents[v]:
            found[v] |= found[p] | (1 << p if view.is_once[p] else 0)
    return found


def _nodes(bits: int) -> Iterator[int]:
    while bits:
        bit = bits & -bits
        bits ^= bit
        yield bit.bit_length() - 1


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
