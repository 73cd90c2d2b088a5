"""The least that any plan of a chain takes: what each operation needs by itself."""

from __future__ import annotations

from ckptcli.planning.actions import BACKWARD, FORWARD_ALL
from ckptcli.planning.planners.base import Floor
from ckptcli.planning.play.chain import saved, tensor
from ckptcli.planning.problems.chain import ChainProblem

STEPS = (FORWARD_ALL, BACKWARD)


def floor_of(problem: ChainProblem) -> Floor:
    """The highest bound. a_0 is resident to the end: nothing makes it again."""
    floors = [_floor(problem, i, step) for i in range(1, problem.stages + 1) for step in STEPS]
    return max(floors, key=lambda floor: floor.bytes)


def _floor(problem: ChainProblem, i: int, verb: str) -> Floor:
    """Of `forward_all` i, which needs some gradient beside, or of `backward` i."""
    A, B, D = problem.A, problem.B, problem.D
    values, size = [tensor(0), saved(i)], A[0] + B[i - 1]
    if i > 1:
        values.insert(1, tensor(i - 1) if A[i - 1] <= B[i - 2] else saved(i - 1))
        size += min(A[i - 1], B[i - 2])
    if verb == FORWARD_ALL:
        work = problem.of[i - 1]
        size += min(D[i:])
    else:
        work = problem.ob[i - 1]
        size += D[i] + D[i - 1]
        values += [f"d{i}", f"d{i - 1}"]
    return Floor(size + work, f"{verb} {i}", tuple(values), work)
