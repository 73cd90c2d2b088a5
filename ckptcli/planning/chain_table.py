"""The dynamic program of a chain whose stages differ, with one move that it lacks.

A part goes from d_t to d_{s-1}, with a_{s-1} resident and m units for everything else. A stage is
run with all it saves, or its input is kept while others run: Beaumont et al. 2019, best among
schedules that hold what they keep until it is used. The move on top: keep what a dear stage saves,
drop its cheap input, and make that again later. The last stage of what is left then is *given*: its
abar is resident, within the m units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckptcli.planning.actions import BACKWARD, FORWARD, FORWARD_ALL, FREE, Action
from ckptcli.planning.play.chain import tensor
from ckptcli.planning.problems.chain import ChainProblem

ALL, INPUT, DEAR = "all", "input", "dear"


@dataclass(frozen=True, slots=True)
class Choice:
    """How a part of the chain begins.

    Attributes:
        how: the first stage with all it saves, or a later stage's input kept, or what a later stage
            saves kept and its input dropped.
        stage: the first stage of what runs next.
        parts: what is left to do, in order: first and last stage, units, whether abar of the last
            is given.
    """

    how: str
    stage: int
    parts: tuple[tuple[int, int, int, bool], ...]


class ChainTable:
    """The least costs of every part of a chain, in units of memory."""

    def __init__(self, problem: ChainProblem, units: int, unit: int) -> None:
        self.problem = problem
        self.units, self.unit = units, unit
        self.A, self.B, self.D, self.of, self.ob = (
            [-(-size // unit) for size in sizes]
            for sizes in (problem.A, problem.B, problem.D, problem.of, problem.ob)
        )
        self._forward = np.concatenate([[0.0], np.cumsum(np.array(problem.uf, float))])
        self._costs: dict[tuple[int, int, bool], Any] = {}
        for length in range(problem.stages):
            for s in range(1, problem.stages - length + 1):
                for given in (False, True):
                    self._costs[s, s + length, given] = self._filled(s, s + length, given)

    def cost(self, s: int, t: int, m: int, given: bool = False) -> float:
        """The least cost of a part; infinite where it does not fit."""
        return float(self._costs[s, t, given][m]) if m >= 0 else float("inf")

    def least(self) -> int | None:
        """The fewest units within which the whole chain can be done; None if these are too few."""
        fitting = np.flatnonzero(np.isfinite(self._costs[1, self.problem.stages, False]))
        return int(fitting[0]) + self.A[0] if len(fitting) else None

    def _filled(self, s: int, t: int, given: bool) -> Any:
        best = np.full(self.units + 1, np.inf)
        if s == t:
            need = self._needed_by_one(s, given)
            cost = self.problem.ub[s - 1] + (0 if given else self.problem.uf[s - 1])
            best[need:] = cost
            return best
        for need, cost, parts, _ in self._options(s, t, given):
            if need > self.units:
                continue
            total = np.full(self.units + 1 - need, float(cost))
            for first, last, less, has in parts:
                costs = self._costs[first, last, has]
                total += costs[need - less : self.units + 1 - less]
            np.minimum(best[need:], total, out=best[need:])
        return best

    def _needed_by_one(self, s: int, given: bool) -> int:
        held = self.D[s] + self.B[s - 1]
        backward = held + self.D[s - 1] + self.ob[s - 1]
        return backward if given else max(backward, held + self.of[s - 1])

    def _options(
        self, s: int, t: int, given: bool
    ) -> Iterator[tuple[int, float, list[tuple[int, int, int, bool]], tuple[str, int]]]:
        """Units that each needs at once, cost of its first moves, the parts that it leaves with how
        many units less each has, and what it is.
        """
        A, B, D = self.A, self.B, self.D
        above = D[t] + (B[t - 1] if given else 0)
        backward = D[s] + B[s - 1] + D[s - 1] + self.ob[s - 1]
        need = max(above + B[s - 1] + self.of[s - 1], backward)
        cost = self.problem.uf[s - 1] + self.problem.ub[s - 1]
        yield need, cost, [(s + 1, t, B[s - 1], given)], (ALL, s)
        need = 0
        for j in range(s, t):
            operand = A[j - 1] if j > s else 0
            dear = max(need, above + operand + B[j - 1] + self.of[j - 1])
            need = max(need, above + operand + A[j] + self.of[j - 1])
            cost = self._forward[j] - self._forward[s - 1]
            parts = [(j + 1, t, A[j], given), (s, j, 0, False)]
            yield max(need, A[j]), cost, parts, (INPUT, j)
            if j > s:
                parts = [(j + 1, t, B[j - 1], given), (s, j, 0, True)]
                yield max(dear, B[j - 1]), cost, parts, (DEAR, j)

    def choice(self, s: int, t: int, m: int, given: bool) -> Choice:
        """What the least cost of a part with s < t comes from."""
        found = []
        for need, cost, parts, what in self._options(s, t, given):
            if need <= m:
                left = tuple((first, last, m - less, has) for first, last, less, has in parts)
                total = cost + sum(self.cost(*part) for part in left)
                found.append((total, Choice(*what, left)))
        return min(found, key=lambda each: each[0])[1]

    def schedule(self) -> Iterator[Action]:
        """The actions of the least cost of the whole chain, which must be finite."""
        todo: list[Any] = [(1, self.problem.stages, self.whole, False)]
        while todo:
            part = todo.pop()
            if isinstance(part[0], str):
                yield part
                continue
            s, t, m, given = part
            if s == t:
                if not given:
                    yield FORWARD_ALL, s
                yield BACKWARD, s
                continue
            choice = self.choice(s, t, m, given)
            todo += self._then(choice, s)
            yield from _begun(choice, s)

    def _then(self, choice: Choice, s: int) -> list[Any]:
        """What follows, last first."""
        if choice.how == ALL:
            return [(BACKWARD, s), choice.parts[0]]
        if choice.how == INPUT:
            return [choice.parts[1], (FREE, tensor(choice.stage)), choice.parts[0]]
        return [choice.parts[1], choice.parts[0]]

    @property
    def whole(self) -> int:
        """The units that the whole chain has beside a_0."""
        return self.units - self.A[0]


def _begun(choice: Choice, s: int) -> Iterator[Action]:
    """The first moves of a part that begins at stage s."""
    if choice.how == ALL:
        yield FORWARD_ALL, s
        return
    for j in range(s, choice.stage + 1):
        yield (FORWARD_ALL if choice.how == DEAR and j == choice.stage else FORWARD), j
        if j > s:
            yield FREE, tensor(j - 1)
