"""The knapsack in whole bytes: which items to keep so that most run time is spared.

States are memory and run time of a choice among the items so far; one that takes more and spares no
more is dropped (Nemhauser and Ullmann, 1969), and one that cannot pass the best even if parts of
items could be kept. Nothing is rounded, so no item is free for being small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli.planning.actions import KEEP
from ckptcli.planning.planners.base import Deadline, Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.knapsack import KnapsackProblem

Choice = tuple[int, Number, "Choice | None", int]
"""Memory, run time spared, the choice that it extends, the item that it adds."""

MOST_STATES = 300_000
"""Of all items together: some seconds."""


@register
class Knapsack(Planner):
    """Exact, in the model where items are independent."""

    keyword = "knapsack"
    summary = "which independent items to keep, exactly, in whole bytes"
    guarantee = "the least run time that is computed again"
    kinds = (KnapsackProblem.kind,)
    rank = 10

    def draft(self, problem: KnapsackProblem, request: Request) -> Draft:
        budget = sum(problem.memory) if request.budget is None else request.budget
        items = _by_density(problem, budget)
        best, is_complete = _best(problem, items, budget, request.deadline)
        kept = sorted(_items(best))
        spared = best[1]
        whole = problem.base_cost
        return Draft(
            lambda: [(KEEP, item) for item in kept],
            lower_bound=2 * whole - (spared if is_complete else _most(problem, items, budget)),
            floor=Floor(0),
            min_budget=0,
            limits=() if is_complete else (request.limit,),
            saved=tuple(map(str, kept)),
        )


def _by_density(problem: KnapsackProblem, budget: int) -> list[int]:
    """The items that fit at all, those first that spare most for their memory."""

    def density(item: int) -> tuple[bool, float]:
        size = problem.memory[item]
        return not size, problem.runtime[item] / size if size else 0.0

    fitting = [item for item, size in enumerate(problem.memory) if size <= budget]
    return sorted(fitting, key=density, reverse=True)


def _most(problem: KnapsackProblem, items: Sequence[int], room: int) -> Number:
    """The run time that the items spare at most, if a part of one can be kept."""
    spared: Number = 0
    for item in items:
        size = problem.memory[item]
        if size > room:
            part = problem.runtime[item] * room
            return spared + (-(-part // size) if isinstance(part, int) else part / size)
        room -= size
        spared += problem.runtime[item]
    return spared


def _best(
    problem: KnapsackProblem, items: Sequence[int], budget: int, deadline: Deadline
) -> tuple[Choice, bool]:
    """The choice that spares most, and whether that is proved."""
    nothing: Choice = (0, 0, None, -1)
    best = _greedy(problem, items, budget)
    states = [nothing]
    left = MOST_STATES
    for place, item in enumerate(items):
        left -= len(states)
        if left < 0 or deadline.passed:
            return best, False
        size, runtime = problem.memory[item], problem.runtime[item]
        rest = items[place + 1 :]
        added: list[Choice] = [
            (state[0] + size, state[1] + runtime, state, item)
            for state in states
            if state[0] + size <= budget
        ]
        states = list(_undominated(states, added))
        best = max(best, states[-1], key=lambda state: state[1])
        states = [s for s in states if s[1] + _most(problem, rest, budget - s[0]) > best[1]]
        if not states:
            break
    return best, True


def _greedy(problem: KnapsackProblem, items: Sequence[int], budget: int) -> Choice:
    choice: Choice = (0, 0, None, -1)
    for item in items:
        size = choice[0] + problem.memory[item]
        if size <= budget:
            choice = (size, choice[1] + problem.runtime[item], choice, item)
    return choice


def _undominated(left: Sequence[Choice], right: Sequence[Choice]) -> Iterator[Choice]:
    """Both merged by memory, without those that spare no more than one of less memory."""
    most: Number = -1
    for state in sorted([*left, *right], key=lambda state: (state[0], -state[1])):
        if state[1] > most:
            most = state[1]
            yield state


def _items(choice: Choice) -> Iterator[int]:
    state: Choice | None = choice
    while state is not None and state[3] >= 0:
        yield state[3]
        state = state[2]
