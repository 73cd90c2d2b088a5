"""What no schedule of a program computes again for less, from the room at each backward step.

During a step its own values and all else that it takes are there; what later steps need has to be
held in what is left of the budget, or computed again behind it. Stretches of steps follow each
other, and so do their costs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ckptcli.planning.problems.base import Number
from ckptcli.planning.room import least_beside
from ckptcli.planning.tape.profile import TapeProfile

MOST_PLACES = 60
"""Steps whose room is looked at; their pairs are what takes time."""


def least_again(profile: TapeProfile, budget_bytes: int) -> Number:
    """The bound, on the cost of what is computed again."""
    count = len(profile.steps)
    places = sorted({count * i // MOST_PLACES for i in range(MOST_PLACES)}) if count else []
    needed = [
        {v for v in profile.needed[k] if profile.model.can_recompute[v]} for k in range(count)
    ]
    after: dict[int, Number] = {}
    for i in reversed(range(len(places))):
        after[i] = _after(profile, budget_bytes, needed, places, i, after)
    return max(after.values(), default=0)


def _after(
    profile: TapeProfile,
    budget_bytes: int,
    needed: Sequence[Collection[int]],
    places: Sequence[int],
    i: int,
    after: dict[int, Number],
) -> Number:
    """What is computed again behind place `i`: up to each later one, and behind that."""
    own = frozenset(needed[places[i]])
    room = budget_bytes - profile.step_peak(places[i], own, frozenset())
    if room < 0:
        return 0  # nothing fits: there is no plan to bound
    wanted: set[int] = set()
    most: Number = 0
    ends = [*places[i + 1 :], len(needed) - 1]
    begin = places[i]
    for j, end in enumerate(ends, i + 1):
        before = len(wanted)
        for k in range(begin + 1, end + 1):
            wanted.update(needed[k])
        begin = end
        if len(wanted) > before or j == i + 1:
            least = _least(profile, wanted - own, own, room)
        most = max(most, least + after.get(j, 0))
    return most


def _least(
    profile: TapeProfile, wanted: Collection[int], own: Collection[int], room: int
) -> Number:
    """The cost of values that do not fit; those of one block of memory are there together."""
    there = {profile.block_of(v) for v in own}
    costs: dict[int, Number] = {}
    for v in wanted:
        block = profile.block_of(v)
        costs[block] = costs.get(block, 0) + _least_cost(profile, v)
    items = [
        (cost, 0 if block in there else profile.bytes_of([block])) for block, cost in costs.items()
    ]
    return least_beside([(cost, size) for cost, size in items if size], room)


def _least_cost(profile: TapeProfile, v: int) -> Number:
    """Of having a value again: computed, or brought back from the host where that is allowed."""
    model = profile.model
    cost = model.costs[v]
    if model.moving.host_bytes and model.can_move(v):
        return min(cost, model.move_cost(v))
    return cost
