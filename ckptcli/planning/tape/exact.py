"""Exact search in the order of gradients: A* over the steps that are done and the values that are
resident or on the host.

A state's bound is the cost of all that later steps need and that is not resident, and of what that
is computed from, up to what is resident or comes back from the host: no schedule of the tape costs
less from there on. A value is let go of only where something would not fit otherwise; before the
forward pass is done any may be moved.

Invariant: states leave the queue in ascending order of bound; the first that has done every step is
a cheapest schedule of this kind.

Source: a best-first search as in D. Dechter and J. Pearl, 1985, with the bound above.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ckptcli.planning.problems.base import Number
from ckptcli.planning.tape.drawing import freed
from ckptcli.planning.tape.player import Player
from ckptcli.planning.tape.profile import TapeProfile
from ckptcli.planning.tape.schedule import Schedule

MOST_VALUES, MOST_THAT_MOVE = 26, 14
"""Of more values the states are too many; and of so many if any may be moved to the host."""

State = tuple[int, int, int, int]
"""Steps that are done, -1 before the forward pass is; as bits resident values, of them those that
the next step is to let go of, and the values that were moved to the host."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the search came to.

    Attributes:
        schedule: the cheapest; None where there is none, or the search was stopped.
        is_complete: whether the search ended by itself.
        lower_bound: no schedule of the kind costs less.
        states: how many were looked at.
    """

    schedule: Schedule | None
    is_complete: bool
    lower_bound: Number
    states: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """What did not fit.

    Attributes:
        peak_bytes: that it takes.
        step: the place of the step, or of the one before which a value is made.
        made: the value; None for the step itself, or the forward pass.
        resident: the values that are there, the one that is made included.
        is_back: whether the value is brought back from the host.
    """

    peak_bytes: int
    step: int
    made: int | None
    resident: tuple[int, ...]
    is_back: bool


class ExactSearch:
    """One search, for one budget in bytes above parameters and input.

    Attributes:
        blocked: what takes least of all that did not fit: where the search found nothing, no
            schedule takes less.
        looks_at_moves: whether the values are few enough for what may be moved to be looked at.
    """

    ASKS_AFTER = 256
    """So many states are looked at between two questions whether to stop."""

    def __init__(self, profile: TapeProfile, budget_bytes: int) -> None:
        self.profile = profile
        self.budget_bytes = budget_bytes
        self.blocked: Blocked | None = None
        self.looks_at_moves = len(profile.model.values) <= MOST_THAT_MOVE
        model = profile.model
        self._values = model.values
        bit = {value: 1 << place for place, value in enumerate(self._values)}
        self._parents = [
            sum(bit.get(parent, 0) for parent in model.parents[value]) for value in self._values
        ]
        self._costs = [model.costs[value] for value in self._values]
        self._move_costs = [model.move_cost(value) for value in self._values]
        movable = set(model.movable)
        self._host_bytes = [model.memory_bytes(v) * (v in movable) for v in self._values]
        self._needed = [
            sum({bit[value] for value in needed if value in bit}) for needed in profile.needed
        ]
        self._later = self._needs_of_later_steps()
        self._useful: dict[int, list[int]] = {}
        self._rise_again = [profile.player.rise_again[value] for value in self._values]
        self._bytes: dict[int, int] = {}
        self._peaks: dict[tuple[int, int, int], int] = {}
        self._missing: dict[tuple[int, int], Number] = {}
        self._forward = ForwardCheck(profile.player, self._values)

    def _needs_of_later_steps(self) -> list[int]:
        """Of each step, what it and those after it need; nothing after the last."""
        later = [0]
        for needed in reversed(self._needed):
            later.append(later[-1] | needed)
        return later[::-1]

    def _useful_under(self, moved: int) -> list[int]:
        """Of each step, the values that it and those after it may be made of."""
        if moved not in self._useful:
            self._useful[moved] = [self._closure(needed, 0, moved) for needed in self._later]
        return self._useful[moved]

    def run(self, stop: Callable[[], bool], *, any_cost: bool = False) -> Found:
        """Search until it is done or `stop` says so; with `any_cost` for any schedule."""
        eager = EAGER if any_cost else 1
        start: State = (-1, (1 << len(self._values)) - 1, 0, 0)
        best: dict[State, Number] = {start: 0}
        came: dict[State, tuple[State, int]] = {}
        queue: list[tuple[Number, int, Number, State]] = [(0, 0, 0, start)]
        done = 0
        bound: Number = 0
        closed: set[State] = set()
        while queue:
            bound, _, cost, state = heapq.heappop(queue)
            if state in closed:
                continue
            closed.add(state)
            done += 1
            if state[0] == len(self._needed):
                return Found(self._schedule(state, came), True, bound, done)
            if done % self.ASKS_AFTER == 0 and stop():
                return Found(None, False, bound, done)
            for following, price, computed in self._expand(state):
                total = cost + price
                if following not in closed and total < best.get(following, INFINITE):
                    best[following] = total
                    came[following] = (state, computed)
                    estimate = total + eager * self._bound(following)
                    heapq.heappush(queue, (estimate, -following[0], total, following))
        return Found(None, True, bound, done)

    def _bound(self, state: State) -> Number:
        step, resident, _, moved = state
        return self._cost_of(self._later[max(step, 0)], resident, moved)

    def _cost_of(self, needed: int, resident: int, moved: int) -> Number:
        """The cost of what is needed and not resident, and of what that is computed from."""
        missing = self._closure(needed & ~resident, resident, moved)
        key = missing, missing & moved
        cost = self._missing.get(key)
        if cost is None:
            cost = self._missing[key] = sum(self._price(p, moved) for p in bits(missing))
        return cost

    def _price(self, place: int, moved: int) -> Number:
        """Of computing a value, or of bringing it back."""
        return self._move_costs[place] if moved >> place & 1 else self._costs[place]

    def _closure(self, missing: int, resident: int, moved: int) -> int:
        """What is missing, and what that is made of and is missing too."""
        found, stack = 0, missing
        while stack:
            lowest = stack & -stack
            stack ^= lowest
            found |= lowest
            if not lowest & moved:
                stack |= self._parents[lowest.bit_length() - 1] & ~resident & ~found
        return found

    def _expand(self, state: State) -> Iterator[tuple[State, Number, int]]:
        """What may follow, what it costs, and which value it makes, -1 for none."""
        step, resident, leaving, moved = state
        if step < 0:
            yield from self._after_forward(resident, moved)
            return
        resident &= self._useful_under(moved)[step]
        missing = self._closure(self._later[step] & ~resident, resident, moved)
        if self.profile.needed[step]:  # values come back where a step asks for some
            yield from self._make(step, resident, leaving, moved, missing)
        if not self._needed[step] & ~resident:
            yield from self._do(step, resident, leaving, moved)

    def _after_forward(self, resident: int, moved: int) -> Iterator[tuple[State, Number, int]]:
        """What is let go of has to be; values are moved in their order, each set in one way."""
        blame = self._forward.blame(resident, self.budget_bytes)
        if blame is None:
            yield (0, resident, 0, moved), 0, -1
        else:
            self._block(self._forward.took_bytes, -1, resident)
        for place in bits(blame or 0):
            yield (-1, resident & ~(1 << place), 0, moved), 0, -1
        room = self._room_beside(moved)
        for place in bits(resident >> moved.bit_length() << moved.bit_length()):
            if 0 < self._host_bytes[place] <= room:
                bit = 1 << place
                yield (-1, resident & ~bit, 0, moved | bit), self._move_costs[place], -1

    def _room_beside(self, moved: int) -> int:
        """The bytes that are free on the host."""
        most = self.profile.model.moving.host_bytes if self.looks_at_moves else 0
        return most - sum(self._host_bytes[place] for place in bits(moved))

    def _make(
        self, step: int, resident: int, leaving: int, moved: int, missing: int
    ) -> Iterator[tuple[State, Number, int]]:
        live = self.profile.fixed_bytes[step] + self._bytes_of(resident)
        droppable = 0
        for place in bits(missing):
            is_back = bool(moved >> place & 1)
            parents = 0 if is_back else self._parents[place]
            if parents & ~resident:
                continue
            takes = live + (self._host_bytes if is_back else self._rise_again)[place]
            made = resident | 1 << place
            if takes <= self.budget_bytes:
                yield (step, made, leaving, moved), self._price(place, moved), place
            else:
                self._block(takes, step, made, place, is_back)
                droppable |= resident & ~parents
        for place in bits(droppable):
            yield (step, resident & ~(1 << place), leaving & ~(1 << place), moved), 0, -1

    def _do(
        self, step: int, resident: int, leaving: int, moved: int
    ) -> Iterator[tuple[State, Number, int]]:
        needed = self._needed[step]
        leaving = (leaving | ~self._useful_under(moved)[step + 1]) & needed
        peak = self._peak(step, resident, leaving)
        if peak <= self.budget_bytes:
            yield (step + 1, resident & ~leaving, 0, moved), 0, -1
            return
        self._block(peak, step, resident)
        for place in bits(resident & ~needed):
            yield (step, resident & ~(1 << place), leaving, moved), 0, -1
        for place in bits(needed & ~leaving):
            yield (step, resident, leaving | 1 << place, moved), 0, -1

    def _block(
        self, peak: int, step: int, resident: int, made: int | None = None, is_back: bool = False
    ) -> None:
        """Note what does not fit, if it is the least so far."""
        if self.blocked is None or peak < self.blocked.peak_bytes:
            there = tuple(self._values[place] for place in bits(resident))
            value = None if made is None else self._values[made]
            self.blocked = Blocked(peak, step, value, there, is_back)

    def _peak(self, step: int, resident: int, leaving: int) -> int:
        key = (step, resident, leaving)
        if key not in self._peaks:
            there = frozenset(self._values[place] for place in bits(resident))
            stays = frozenset(self._values[place] for place in bits(resident & ~leaving))
            self._peaks[key] = self.profile.step_peak(step, there, stays)
        return self._peaks[key]

    def _bytes_of(self, resident: int) -> int:
        if resident not in self._bytes:
            values = [self._values[place] for place in bits(resident)]
            self._bytes[resident] = self.profile.bytes_of(values)
        return self._bytes[resident]

    def _schedule(self, state: State, came: dict[State, tuple[State, int]]) -> Schedule:
        """The way to a state, with every value let go of at its last use."""
        computed: list[list[int]] = [[] for _ in self._needed]
        held, moved = state[1], state[3]
        while state in came:
            before, place = came[state]
            if place >= 0:
                computed[before[0]].insert(0, self._values[place])
            if before[0] < 0 <= state[0]:
                held = state[1]
            state = before
        moves = []
        for place, needed in enumerate(self.profile.needed):
            for value in needed:
                moves.append((self.profile.steps[place], value, computed[place]))
                computed[place] = []
        values = frozenset(self._values[place] for place in bits(held))
        on_host = frozenset(self._values[place] for place in bits(moved))
        return freed(self.profile.model, values, moves, on_host)


INFINITE = float("inf")
EAGER = 1000
"""How much more what is left to pay counts than what was paid, where any schedule will do."""


class ForwardCheck:
    """Which held values make a forward pass too large.

    Attributes:
        took_bytes: what the pass takes at the moment that was blamed last.
    """

    def __init__(self, player: Player, values: list[int]) -> None:
        self.took_bytes = 0
        self._moments = list(player.forward_moments(values))

    def blame(self, held: int, budget_bytes: int) -> int | None:
        """The held values that are live only since they are held, where a pass that holds these
        first takes more than the budget; None where it never does.
        """
        for live_bytes, beside, sizes in self._moments:
            held_now = held & beside
            took_bytes = live_bytes + sum(size for mask, size in sizes if mask & held_now)
            if took_bytes > budget_bytes:
                self.took_bytes = took_bytes
                return held_now
        return None


def bits(mask: int) -> Iterator[int]:
    """The places of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
