"""Reversing equal steps with slots in memory and on disk, where writing and reading cost.

Two tables of least costs, an evaluation costing 1: in `memory` the first state is live and in one
of c slots, with d disk slots free; on `disk` it is live and there, with c slots and d disk slots
free beside. After Aupy, Herrmann and others (Disk-Revolve, 2016; H-Revolve, 2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ckptcli.planning.actions import ADVANCE, DISK, FREE, RESTORE, REVERSE, STORE, Action
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.steps import StepsProblem

MEMORY = "memory"
STORED, WRITTEN, ALONE, MOVED = "stored", "written", "alone", "moved"
"""How a part begins: a later state is stored, or written; the last step is reversed by itself; the
first state moves from memory to disk, or back."""

Part = tuple[str, int, int, int]
"""Where the first state is; slots; disk slots; how many steps."""


class DiskTable:
    """The tables up to the steps of a problem and its slots."""

    def __init__(self, problem: StepsProblem, slots: int) -> None:
        self.problem = problem
        self.slots = slots
        shape = problem.n + 1
        places = [(MEMORY, c, d) for c in range(1, slots + 1) for d in range(problem.disk + 1)]
        places += [(DISK, c, d) for c in range(slots + 1) for d in range(problem.disk)]
        self._costs: dict[tuple[str, int, int], Any] = {
            place: np.full(shape, np.inf) for place in places
        }
        for costs in self._costs.values():
            costs[:2] = 0, 1
        for n in range(2, shape):
            self._fill(n)

    def cost(self) -> Number:
        """The least cost of all steps."""
        cost = float(self._costs[MEMORY, self.slots, self.problem.disk][self.problem.n])
        return int(cost) if cost == int(cost) else cost

    def _fill(self, n: int) -> None:
        for place, costs in self._costs.items():
            costs[n] = min(cost for cost, _, _ in self._options(place, n))
        staying = {place: float(costs[n]) for place, costs in self._costs.items()}
        for place, costs in self._costs.items():
            other, price = self._other(place)
            if other in staying:
                costs[n] = min(costs[n], staying[other] + price)

    def _other(self, place: tuple[str, int, int]) -> tuple[tuple[str, int, int], float]:
        """Where a part is once its first state has moved, and what that costs."""
        where, c, d = place
        if where == MEMORY:
            return (DISK, c, d - 1), self.problem.write_cost
        return (MEMORY, c, d + 1), 0.0

    def _options(self, place: tuple[str, int, int], n: int) -> Iterator[tuple[float, str, int]]:
        """The cost of each way to begin with the first state where it is, and how far it goes."""
        where, c, d = place
        again = self._costs[place][1:n] + (self.problem.read_cost if where == DISK else 0)
        yield float(n + again[-1]), ALONE, n - 1
        left = c - 1 if where == MEMORY else c
        steps = np.arange(1, n)
        for how, then, price in (
            (STORED, (MEMORY, left, d), 0),
            (WRITTEN, (DISK, left, d - 1), self.problem.write_cost),
        ):
            if then in self._costs:
                costs = steps + price + self._costs[then][n - 1 : 0 : -1] + again
                m = int(np.argmin(costs))
                yield float(costs[m]), how, m + 1

    def _choice(self, place: tuple[str, int, int], n: int) -> tuple[str, int]:
        best, how, m = min(self._options(place, n), key=lambda option: option[0])
        other, _ = self._other(place)
        if other in self._costs and self._costs[place][n] < best:
            return MOVED, 0
        return how, m

    def schedule(self) -> Iterator[Action]:
        """The actions of the least cost."""
        yield STORE, 0
        whole = (MEMORY, self.slots, self.problem.disk)
        todo: list[Any] = [(whole, 0, self.problem.n)]
        while todo:
            part = todo.pop()
            if isinstance(part[0], str):
                yield part
                continue
            place, start, stop = part
            if stop - start == 1:
                yield REVERSE, stop
                yield _at(FREE, start, place)
                continue
            how, m = self._choice(place, stop - start)
            first, later = self._begun(how, place, start, start + m, stop)
            yield from first
            todo += later[::-1]

    def _begun(
        self, how: str, place: tuple[str, int, int], start: int, middle: int, stop: int
    ) -> tuple[list[Action], list[Any]]:
        """What is done at once, and what follows."""
        where, c, d = place
        if how == MOVED:
            other, _ = self._other(place)
            return [_at(STORE, start, other), _at(FREE, start, place)], [(other, start, stop)]
        rest = [_at(RESTORE, start, place), (place, start, middle)]
        if how == ALONE:
            return [(ADVANCE, start, middle), (REVERSE, stop)], rest
        left = c - 1 if where == MEMORY else c
        then = (MEMORY, left, d) if how == STORED else (DISK, left, d - 1)
        first = [(ADVANCE, start, middle), _at(STORE, middle, then)]
        return first, [(then, middle, stop), *rest]


def _at(verb: str, state: int, place: tuple[str, int, int]) -> Action:
    return (verb, state, DISK) if place[0] == DISK else (verb, state)
