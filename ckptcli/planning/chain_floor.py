"""The least that any plan of a chain takes: what each operation needs by itself."""

from __future__ import annotations

from itertools import accumulate

from ckptcli.planning.actions import BACKWARD, FORWARD_ALL
from ckptcli.planning.planners.base import Floor
from ckptcli.planning.play.chain import saved, tensor
from ckptcli.planning.problems.chain import ChainProblem

STEPS = (FORWARD_ALL, BACKWARD)


def floor_of(problem: ChainProblem) -> Floor:
    """The highest bound. a_0 is resident to the end: nothing makes it again."""
    least = list(accumulate(reversed(problem.D), min))[::-1]  # of each d_i and all after it
    stages = range(1, problem.stages + 1)
    sizes = {(i, verb): _size(problem, i, verb, least[i]) for i in stages for verb in STEPS}
    i, verb = max(sizes, key=sizes.__getitem__)
    return _floor(problem, i, verb, sizes[i, verb])


def _size(problem: ChainProblem, i: int, verb: str, gradient: int) -> int:
    """What `forward_all` i takes, which needs some gradient beside, or `backward` i."""
    A, B, D = problem.A, problem.B, problem.D
    operands = A[0] + (min(A[i - 1], B[i - 2]) if i > 1 else 0)
    if verb == FORWARD_ALL:
        return operands + B[i - 1] + gradient + problem.of[i - 1]
    return operands + B[i - 1] + D[i] + D[i - 1] + problem.ob[i - 1]


def _floor(problem: ChainProblem, i: int, verb: str, size: int) -> Floor:
    """The same in words."""
    values = [tensor(0), saved(i)]
    if i > 1:
        is_smaller = problem.A[i - 1] <= problem.B[i - 2]
        values.insert(1, tensor(i - 1) if is_smaller else saved(i - 1))
    if verb == FORWARD_ALL:
        return Floor(size, f"{verb} {i}", tuple(values), problem.of[i - 1])
    return Floor(size, f"{verb} {i}", (*values, f"d{i}", f"d{i - 1}"), problem.ob[i - 1])
