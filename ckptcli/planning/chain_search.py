"""Exact search on a chain: states are the gradient at hand and what is resident, as bits.

The bound: the backward of every stage that is left, and the forward of each whose abar is not
resident. Tensors are dropped only where an operation does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ckptcli.planning.actions import BACKWARD, FORWARD, FORWARD_ALL, FREE, Action
from ckptcli.planning.best_first import Found, search
from ckptcli.planning.planners.base import Deadline
from ckptcli.planning.play.chain import saved, tensor
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.chain import ChainProblem

State = tuple[int, int, int]
"""The gradient at hand; bit i of the second for a_i, of the third for abar_i."""


class ChainSearch:
    """The states of a chain within a budget.

    Attributes:
        blocked: the least budget at which an operation fits that does not within this one.
    """

    def __init__(self, problem: ChainProblem, budget: int) -> None:
        self.problem = problem
        self.budget = budget
        self.blocked: int | None = None
        self._backward = [sum(problem.ub[:i]) for i in range(problem.stages + 1)]

    def run(self, deadline: Deadline, most: int, below: Number | None = None) -> Found[State]:
        """The cheapest plan that costs less than `below`, in `most` states."""
        start = (self.problem.stages, 1, 0)
        if self._live(start) > self.budget:
            self.blocked = self._live(start)
            return Found(None, None, None, True, 0)
        return search(
            start, self._successors, self._bound, lambda s: not s[0], deadline, most, below
        )

    def _bound(self, state: State) -> Number:
        gradient, _, abars = state
        missing = (j for j in range(1, gradient + 1) if not abars >> j & 1)
        return self._backward[gradient] + sum(self.problem.uf[j - 1] for j in missing)

    def _live(self, state: State) -> int:
        gradient, tensors, abars = state
        A, B = self.problem.A, self.problem.B
        stages = range(self.problem.stages + 1)
        held = sum(A[j] for j in stages if tensors >> j & 1)
        return self.problem.D[gradient] + held + sum(B[j - 1] for j in stages if abars >> j & 1)

    def _successors(self, state: State) -> Iterator[tuple[Number, State]]:
        live = self._live(state)
        is_blocked = False
        for takes, cost, after in self._operations(state):
            if live + takes <= self.budget:
                yield cost, after
                continue
            is_blocked = True
            if self.blocked is None or live + takes < self.blocked:
                self.blocked = live + takes
        if is_blocked:
            gradient, tensors, abars = state
            for j in range(1, gradient + 1):
                if tensors >> j & 1:
                    yield 0, (gradient, tensors ^ 1 << j, abars)
                if abars >> j & 1:
                    yield 0, (gradient, tensors, abars ^ 1 << j)

    def _operations(self, state: State) -> Iterator[tuple[int, Number, State]]:
        """What each takes beside what is resident, its cost, and where it leads."""
        gradient, tensors, abars = state
        of = self.problem
        for j in range(1, gradient + 1):
            if not (tensors | abars) >> (j - 1) & 1:
                continue
            if not abars >> j & 1:
                after = (gradient, tensors, abars | 1 << j)
                yield of.B[j - 1] + of.of[j - 1], of.uf[j - 1], after
                if j < gradient and not tensors >> j & 1:
                    after = (gradient, tensors | 1 << j, abars)
                    yield of.A[j] + of.of[j - 1], of.uf[j - 1], after
            elif j == gradient:
                earlier = (1 << j) - 1
                after = (j - 1, tensors & earlier, abars & earlier)
                yield of.D[j - 1] + of.ob[j - 1], of.ub[j - 1], after


def actions_of(path: Sequence[State]) -> list[Action]:
    """The schedule along the states."""
    found: list[Action] = []
    for (gradient, tensors, abars), (then, tensors_then, abars_then) in pairwise(path):
        if then < gradient:
            found.append((BACKWARD, gradient))
        elif new := tensors_then & ~tensors:
            found.append((FORWARD, new.bit_length() - 1))
        elif new := abars_then & ~abars:
            found.append((FORWARD_ALL, new.bit_length() - 1))
        elif gone := tensors & ~tensors_then:
            found.append((FREE, tensor(gone.bit_length() - 1)))
        else:
            found.append((FREE, saved((abars & ~abars_then).bit_length() - 1)))
    return found
