"""Revolve: the binomial schedule of Griewank and Walther (2000), from its closed form.

The schedule is made action by action, in memory that grows with the slots alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli.planning.actions import ADVANCE, FREE, RESTORE, REVERSE, STORE, Action
from ckptcli.planning.binomial import advances, reach, split, sweeps
from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.steps import StepsProblem

ACTIONS_A_STEP = 5


@register
class Revolve(Planner):
    """Slots hold states; x_0 takes one."""

    keyword = "revolve"
    summary = "binomial checkpointing of equal steps, in closed form"
    guarantee = "the least number of advances for these slots"
    kinds = (StepsProblem.kind,)
    rank = 10

    def draft(self, problem: StepsProblem, request: Request) -> Draft:
        n = problem.n
        slots = min(n, n if request.budget is None else request.budget)
        least = Floor(1, "store 0", ("0",))
        if not slots:
            return Draft(floor=least, min_budget=1)
        cost = advances(n, slots)
        return Draft(
            lambda: schedule(n, slots),
            length=ACTIONS_A_STEP * n,
            cost=cost,
            peak=max(1, min(slots, n - 1)),
            lower_bound=cost if not problem.disk else None,
            floor=least,
            min_budget=1,
        )


def schedule(n: int, slots: int) -> Iterator[Action]:
    """The actions that reverse n steps, lazily; at most five a step."""
    yield STORE, 0
    stored = {0}
    todo = [(0, n, slots, sweeps(n, slots))]
    live = 0
    while todo:
        start, stop, free, r = todo.pop()
        if live != start:
            yield RESTORE, start
        while stop - start > 1:
            while r > 0 and reach(free, r - 1) >= stop - start:
                r -= 1
            middle = start + split(stop - start, free, r)
            todo.append((start, middle, free, r))
            yield ADVANCE, start, middle
            if stop - middle > 1:
                stored.add(middle)
                yield STORE, middle
            start, free = middle, free - 1
        yield REVERSE, stop
        live = start
        if start in stored:
            stored.remove(start)
            yield FREE, start
