"""What no plan of a dag costs less than, in any order and however often values are computed again.

The places are first computations along one longest way, so that they come in this order in every
plan. A value is resident at a place only if it was at the place before or was computed in between;
it is computed only if its parents were resident or computed; what is resident fits. In parts of
values that is a linear program.

Source: the constraints of Jain et al., Checkmate, MLSys 2020, at places that all orders share.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.planning.dag_view import DagView
from ckptcli.planning.whole.linear import MOST_COLUMNS, Relaxation


def relaxation(view: DagView, budget: int) -> Relaxation:
    """The program, of as many places as `MOST_COLUMNS` allow."""
    return _Built(view, budget, _thinned(_longest_way(view), len(view.needed))).program


def _longest_way(view: DagView) -> list[int]:
    """Nodes each of which leads to the next."""
    depth = [1] * len(view.size)
    before = [-1] * len(view.size)
    for v in view.needed:
        for p in view.parents[v]:
            if depth[p] >= depth[v]:
                depth[v], before[v] = depth[p] + 1, p
    v = max(view.needed, key=lambda v: depth[v])
    way = []
    while v >= 0:
        way.append(v)
        v = before[v]
    return way[::-1]


def _thinned(way: Sequence[int], count: int) -> list[int]:
    """Evenly, and the last one among them."""
    most = max(1, MOST_COLUMNS // (3 * count))
    if len(way) <= most:
        return list(way)
    return [way[len(way) * (i + 1) // most - 1] for i in range(most)]


class _Built:
    """The columns of each node and place; after the last place comes what is left."""

    def __init__(self, view: DagView, budget: int, way: Sequence[int]) -> None:
        self.view = view
        self.program = Relaxation([view.cost[v] for v in view.needed], budget)
        self._way = way
        self._first: dict[tuple[int, int], int] = {}
        self._made: dict[tuple[int, int], int] = {}
        self._resident: dict[tuple[int, int], int] = {}
        windows = _windows(view, way)
        for v in view.needed:
            self._columns(v, *windows[v])
        for v in view.needed:
            self._rows(v, *windows[v])
        for i, v in enumerate(way):
            self._place(i, v, budget)

    def _columns(self, v: int, low: int, high: int) -> None:
        """First computed between two places, computed, resident."""
        column, cost = self.program.column, self.view.cost[v]
        for i in range(low, len(self._way) + 1):
            sure = float(low == high == i)
            if i <= high:
                self._first[v, i] = column(cost if self.view.is_once[v] else 0, sure)
            if not self.view.is_once[v]:
                self._made[v, i] = column(cost, sure)
            elif i <= high:
                self._made[v, i] = self._first[v, i]
            used_here = i < len(self._way) and (v == self._way[i] or v in self._parents_at(i))
            self._resident[v, i] = column(least=float(used_here))

    def _parents_at(self, i: int) -> tuple[int, ...]:
        return self.view.parents[self._way[i]]

    def _rows(self, v: int, low: int, high: int) -> None:
        add = self.program.at_least
        firsts = [self._first[v, i] for i in range(low, high + 1)]
        add(1, dict.fromkeys(firsts, 1))
        for i in range(low, len(self._way) + 1):
            made = self._made.get((v, i))
            add(0, {self._resident[v, i]: -1, **self._sources(v, i)})
            if made is not None:
                if i <= high and made != self._first[v, i]:
                    add(0, {made: 1, self._first[v, i]: -1})
                for parent in self.view.parents[v]:
                    add(0, {made: -1, **self._sources(parent, i)})
            if v in self.view.problem.keep:
                add(0, {self._resident[v, i]: 1, **dict.fromkeys(firsts[: i - low + 1], -1)})

    def _sources(self, v: int, i: int) -> dict[int, float]:
        """Where a value comes from that is there between two places: it was, or it is made."""
        columns = (self._resident.get((v, i - 1)), self._made.get((v, i)))
        return {column: 1.0 for column in columns if column is not None}

    def _place(self, i: int, node: int, budget: int) -> None:
        """What is resident when a node of the way is computed for the first time."""
        sizes = {
            self._resident[v, i]: self.view.size[v]
            for v in self.view.needed
            if (v, i) in self._resident
        }
        self.program.fits(sizes, budget - self.view.workspace[node])


def _windows(view: DagView, way: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Of each node the first and the last place up to which it may be computed first: behind its
    last ancestor, up to its first descendant on the way.
    """
    place = {v: i for i, v in enumerate(way)}
    low: dict[int, int] = {}
    for v in view.needed:
        behind = max((low[p] + (p in place) for p in view.parents[v]), default=0)
        low[v] = place.get(v, behind)
    high: dict[int, int] = {}
    for v in reversed(view.needed):
        ahead = min((high[c] for c in view.children[v]), default=len(way))
        high[v] = place.get(v, ahead)
    return {v: (low[v], high[v]) for v in view.needed}
