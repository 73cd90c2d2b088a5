"""A long chain as a shorter one whose stages are groups of its stages, and the way back.

A group is run forward keeping its last output alone, or with all that its stages save, and is
reversed as a whole. Its workspace is what that takes beyond operands and results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ckptcli.planning.actions import BACKWARD, FORWARD, FORWARD_ALL, FREE, Action
from ckptcli.planning.play.chain import tensor
from ckptcli.planning.problems.chain import ChainProblem


def grouped(problem: ChainProblem, ends: Sequence[int]) -> ChainProblem:
    """The chain of groups, which end with these stages, ascending, the last with the last."""
    groups = list(pairwise([0, *ends]))
    A = tuple(problem.A[end] for end in (0, *ends))
    D = tuple(problem.D[end] for end in (0, *ends))
    return ChainProblem(
        tuple(sum(problem.uf[start:end]) for start, end in groups),
        tuple(sum(problem.ub[start:end]) for start, end in groups),
        A,
        tuple(sum(problem.B[start:end]) for start, end in groups),
        D,
        tuple(_forward(problem, start, end) for start, end in groups),
        tuple(_backward(problem, start, end) for start, end in groups),
    )


def _forward(problem: ChainProblem, start: int, end: int) -> int:
    """The workspace of running a group either way."""
    plain, saved, most_saved = 0, 0, 0
    for i in range(start + 1, end + 1):
        operand = problem.A[i - 1] if i > start + 1 else 0
        plain = max(plain, operand + problem.A[i] + problem.of[i - 1])
        saved += problem.B[i - 1]
        most_saved = max(most_saved, saved + problem.of[i - 1])
    return max(plain - problem.A[end], most_saved - saved)


def _backward(problem: ChainProblem, start: int, end: int) -> int:
    """The workspace of reversing a group."""
    saved = whole = sum(problem.B[start:end])
    most = 0
    for i in range(end, start, -1):
        most = max(most, saved + problem.D[i] + problem.D[i - 1] + problem.ob[i - 1])
        saved -= problem.B[i - 1]
    return max(0, most - whole - problem.D[end] - problem.D[start])


def ungrouped(actions: Iterable[Action], ends: Sequence[int]) -> Iterator[Action]:
    """The actions of groups as actions of stages; of a group nothing is freed but its output."""
    bounds = [0, *ends]
    for verb, operand in actions:
        if verb == FREE:
            yield FREE, tensor(bounds[int(str(operand).removeprefix("a"))])
            continue
        start, end = bounds[int(operand) - 1], bounds[int(operand)]
        if verb == BACKWARD:
            yield from ((BACKWARD, i) for i in range(end, start, -1))
        elif verb == FORWARD_ALL:
            yield from ((FORWARD_ALL, i) for i in range(start + 1, end + 1))
        else:
            for i in range(start + 1, end + 1):
                yield FORWARD, i
                if i > start + 1:
                    yield FREE, tensor(i - 1)
