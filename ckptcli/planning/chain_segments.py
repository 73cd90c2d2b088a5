"""Segments of a chain, after Chen, Xu, Zhang and Guestrin (2016): inputs are kept, else made again.

Every segment but the last is run without saving, its input kept; the last is run with all it saves.
Then, from the last to the first, each is reversed, and the one before it run again with all it
saves. Every stage is made again once at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from ckptcli.planning.actions import BACKWARD, FORWARD, FORWARD_ALL, FREE, Action
from ckptcli.planning.play.chain import tensor
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.chain import ChainProblem

Ends = Sequence[int]
"""The last stage of each segment, ascending."""


def schedule(problem: ChainProblem, ends: Ends) -> Iterator[Action]:
    """The actions of segments."""
    starts = [0, *ends[:-1]]
    for start, end in zip(starts[:-1], ends):
        for i in range(start + 1, end + 1):
            yield FORWARD, i
            if i - 1 > start:
                yield FREE, tensor(i - 1)
    for start, end in zip(reversed(starts), reversed(ends)):
        if end < problem.stages:
            yield FREE, tensor(end)
        for i in range(start + 1, end + 1):
            yield FORWARD_ALL, i
        for i in range(end, start, -1):
            yield BACKWARD, i


class Segments:
    """What segments of a chain cost and take, from sums that are made once."""

    def __init__(self, problem: ChainProblem) -> None:
        self.problem = problem
        self._costs = [0, *accumulate(problem.uf)]
        self._saved = [0, *accumulate(problem.B)]
        A, D = problem.A, problem.D
        self._forward = [0] + [
            A[i - 1] + A[i] + problem.of[i - 1] for i in range(1, problem.stages + 1)
        ]
        self._forward_all = [0] + [
            self._saved[i] + problem.of[i - 1] for i in range(1, problem.stages + 1)
        ]
        self._backward = [0] + [
            self._saved[i] + D[i] + D[i - 1] + problem.ob[i - 1]
            for i in range(1, problem.stages + 1)
        ]

    def cost(self, ends: Ends) -> Number:
        """What is made again."""
        return self._costs[ends[-2]] if len(ends) > 1 else 0

    def peak(self, ends: Ends) -> int:
        """The most that is resident."""
        peak, kept, start = 0, 0, 0
        last = self.problem.D[-1]
        for place, end in enumerate(ends):
            kept += self.problem.A[start]
            if place < len(ends) - 1:
                first = self._forward[start + 1] - self.problem.A[start]
                others = max(self._forward[start + 2 : end + 1], default=0)
                peak = max(peak, last + kept + max(first, others))
            saved = self._saved[start]
            ahead = max(self._forward_all[start + 1 : end + 1]) - saved + self.problem.D[end]
            back = max(self._backward[start + 1 : end + 1]) - saved
            peak = max(peak, kept + max(ahead, back))
            start = end
        return peak

    def even(self, count: int) -> Ends:
        """So many segments, of as many stages each as can be, longer ones first."""
        length, longer = divmod(self.problem.stages, count)
        return list(accumulate(length + (i < longer) for i in range(count)))

    def even_bytes(self, count: int) -> Ends:
        """About so many segments that save about as much each."""
        whole = self._saved[-1]
        ends: list[int] = []
        for i, saved in enumerate(self._saved[1:-1], 1):
            if saved * count >= whole * (len(ends) + 1) and len(ends) < count - 1:
                ends.append(i)
        return [*ends, self.problem.stages]

    def filled(self, budget: int, last_stage: int) -> Ends | None:
        """Each segment before `last_stage` as long as fits, which is longer for earlier ones."""
        problem, A, D = self.problem, self.problem.A, self.problem.D
        ends: list[int] = []
        start = kept = 0
        while start < last_stage:
            kept += A[start]
            room = budget - kept + self._saved[start]
            end = start
            while end < last_stage:
                after = end + 1
                needed = max(self._backward[after], self._forward_all[after] + D[after])
                if needed > room:
                    break
                end = after
            if end == start:
                return None
            ends.append(end)
            start = end
        return ends if start == problem.stages else [*ends, problem.stages]
