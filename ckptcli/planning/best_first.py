"""A* over states that are found as they are met.

With a bound that is admissible and consistent the first end that is taken up is the cheapest. Ties
go to the state that has cost more so far, which is nearer to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from ckptcli.planning.planners.base import Deadline
from ckptcli.planning.problems.base import Number

State = TypeVar("State", bound=Hashable)

CHECKED_EVERY = 256
"""States between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Found(Generic[State]):
    """How a search ended.

    Attributes:
        path: the states from the start to a cheapest end; None without one.
        cost: of that path.
        lower_bound: no end costs less; None if there is no end at all.
        is_complete: whether nothing was left to look at that could be cheaper.
        states: how many were taken up.
    """

    path: list[State] | None
    cost: Number | None
    lower_bound: Number | None
    is_complete: bool
    states: int


def search(
    start: State,
    successors: Callable[[State], Iterable[tuple[Number, State]]],
    bound: Callable[[State], Number | None],
    is_end: Callable[[State], bool],
    deadline: Deadline,
    most: int,
    below: Number | None = None,
) -> Found[State]:
    """The cheapest path to an end.

    Args:
        start: where to begin.
        successors: the cost of each move from a state, and where it leads.
        bound: what at least is left to pay; None where no end can be reached.
        is_end: whether a state is one.
        deadline: when to stop.
        most: after how many states to stop.
        below: ends that cost as much or more are not looked for.
    """
    left = bound(start)
    if left is None:
        return Found(None, None, None, True, 0)
    paid: dict[State, Number] = {start: 0}
    came_from: dict[State, State] = {}
    heap: list[tuple[Number, Number, int, State]] = [(left, 0, 0, start)]
    met = taken = 0
    while heap:
        total, minus_paid, _, state = heappop(heap)
        if below is not None and total >= below:
            return Found(None, None, below, True, taken)
        if -minus_paid > paid[state]:
            continue
        taken += 1
        if is_end(state):
            return Found(_path(came_from, state), total, total, True, taken)
        if taken > most or (taken % CHECKED_EVERY == 0 and deadline.passed):
            return Found(None, None, total, False, taken)
        for cost, after in successors(state):
            spent = cost - minus_paid
            known = paid.get(after)
            if known is not None and known <= spent:
                continue
            left = bound(after)
            if left is not None:
                met += 1
                paid[after] = spent
                came_from[after] = state
                heappush(heap, (spent + left, -spent, -met, after))
    return Found(None, None, None, True, taken)


def _path(came_from: dict[Any, Any], state: Any) -> list[Any]:
    path = [state]
    while state in came_from:
        state = came_from[state]
        path.append(state)
    return path[::-1]
