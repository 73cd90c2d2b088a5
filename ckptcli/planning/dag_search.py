"""Exact search on a dag: states are what is done and what is resident, as bits.

The bound: every goal that is not done has to be computed, and whatever leads to it and is not
resident. Each of these costs is paid at least once more, so it is admissible, and consistent. What
does not fit at a later place and is needed after it comes on top (`dag_order.py`).

Values are dropped only where an action does not fit, for each plan can be changed to drop later;
and at once when nothing that is left to do can use them. A plan that stores is so never passed over
for one that computes again at the same cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ckptcli.planning.best_first import Found, search
from ckptcli.planning.dag_order import Stretches
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.planners.base import Deadline
from ckptcli.planning.problems.base import Number

EAGER = 1000

State = tuple[int, int]
"""Bits of what is done, of nodes where that matters, and bits of what is resident."""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left to do once some nodes are done.

    Attributes:
        cost: of the nodes that have to be computed whatever is resident.
        sure: these nodes.
        wanted: what they are made of, in the stretches of an order one after the other, each with
            the least cost of what is computed again after it.
        useful: all that may have a use, for computing something again too.
        open: what of it may be computed, by its order and by what it needs that is computed once.
    """

    cost: Number
    sure: int
    wanted: Sequence[tuple[int, Number]]
    useful: int
    open: int


class DagSearch:
    """The states of a dag within a budget; where stretches have an order, in it alone.

    Attributes:
        blocked: the least budget at which an action fits that does not within this one.
    """

    def __init__(self, view: DagView, budget: int, stretches: Stretches | None = None) -> None:
        problem = view.problem
        order = None if stretches is None else stretches.order
        self.budget = budget
        self.blocked: int | None = None
        self._order = order
        self._stretches = stretches
        self._needed = list(view.needed)
        self._cost, self._size = view.cost, view.size
        self._takes = [size + work for size, work in zip(view.size, view.workspace)]
        self._parents = [_bits(parents) for parents in view.parents]
        self._once = _bits(v for v in view.needed if v in problem.once)
        self._goals = _bits(problem.goals)
        self._keep = _bits(problem.keep)
        self._noted = self._goals | self._once | _bits(order or ())
        self._left: dict[int, Left] = {}

    def run(
        self,
        deadline: Deadline,
        most: int,
        below: Number | None = None,
        *,
        any_cost: bool = False,
    ) -> Found[State]:
        """The cheapest plan that costs less than `below`, in `most` states; with `any_cost` the
        first that is met.
        """
        if self._stretches is not None and self._stretches.takes > self.budget:
            self.blocked = self._stretches.takes
            return Found(None, None, None, True, 0)
        bound = self._eager_bound if any_cost else self._bound
        return search((0, 0), self._successors, bound, self._is_end, deadline, most, below)

    def least(self) -> Number | None:
        """What no plan costs less than, without a search; None if there is none."""
        return self._bound((0, 0))

    def _eager_bound(self, state: State) -> Number | None:
        """Makes what is left to do count far more than what was done."""
        bound = self._bound(state)
        return None if bound is None else bound * EAGER

    def _is_end(self, state: State) -> bool:
        return not self._goals & ~state[0]

    def left(self, done: int) -> Left:
        """What is left to do; worked out once for each `done`."""
        known = self._left.get(done)
        if known is None:
            known = self._left[done] = self._worked_out(done)
        return known

    def _worked_out(self, done: int) -> Left:
        sure = self._goals & ~done
        useful = wanted = 0
        cost: Number = 0
        for v in reversed(self._needed):
            bit = 1 << v
            if bit & self._noted & ~done & wanted:
                sure |= bit  # never computed, so nowhere resident
            if bit & sure:
                cost += self._cost[v]
                wanted |= self._parents[v]
                useful |= self._parents[v]
            elif bit & useful & ~(self._once & done):
                useful |= self._parents[v]
        waiting = [1 << v for v in self._order or () if not done >> v & 1]
        of = self._stretches
        stretched = [(wanted, 0)] if of is None else of.left(done, wanted)
        later = sum(waiting[1:])
        open_ = (useful | sure) & ~(later | self._once & done)
        missing = self._once & ~done
        may_be = sum(1 << v for v in _nodes(open_) if not self._parents[v] & missing)
        return Left(cost, sure, stretched, useful, may_be)

    def _bound(self, state: State) -> Number | None:
        done, resident = state
        left = self.left(done)
        cost = left.cost
        most: Number = 0
        have = resident | left.sure
        parents, costs, gone = self._parents, self._cost, self._once & done
        for wanted, after in left.wanted:
            missing = wanted & ~have
            while missing:
                if missing & gone:
                    return None
                bit = missing & -missing
                v = bit.bit_length() - 1
                cost += costs[v]
                have |= bit
                missing = (missing | parents[v]) & ~have
            if cost + after > most:
                most = cost + after
        return most

    def _successors(self, state: State) -> Iterator[tuple[Number, State]]:
        done, resident = state
        live = self._live(resident)
        is_blocked = False
        for v in self._possible(done, resident):
            takes = live + self._takes[v]
            if takes > self.budget:
                is_blocked = True
                if self.blocked is None or takes < self.blocked:
                    self.blocked = takes
                continue
            bit = 1 << v
            after = done | bit & self._noted
            kept = (resident | bit) & (self.left(after).useful | self._keep)
            yield self._cost[v], (after, kept)
        if is_blocked:
            for v in _nodes(resident & ~self._keep):
                yield 0, (done, resident ^ 1 << v)

    def _possible(self, done: int, resident: int) -> Iterator[int]:
        """The nodes whose operands are resident and whose result has a use."""
        parents, absent = self._parents, ~resident
        for v in _nodes(self.left(done).open & absent):
            if not parents[v] & absent:
                yield v

    def _live(self, resident: int) -> int:
        return sum(self._size[v] for v in _nodes(resident))


def moves_of(path: Sequence[State]) -> list[int]:
    """What to compute and to free on the way through the states."""
    moves: list[int] = []
    for (done_before, before), (done, after) in pairwise(path):
        made = after & ~before | done & ~done_before
        if made:
            moves.append(made.bit_length() - 1)
        moves += [~v for v in _nodes((before | made) & ~after)]
    return moves


def _bits(nodes: Iterable[int]) -> int:
    bits = 0
    for v in nodes:
        bits |= 1 << v
    return bits


def _nodes(bits: int) -> Iterator[int]:
    """The nodes of bits, ascending."""
    while bits:
        bit = bits & -bits
        bits ^= bit
        yield bit.bit_length() - 1
