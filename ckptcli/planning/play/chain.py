"""Plays a schedule on a chain; `problems/chain.py` has the rules."""

from __future__ import annotations

from collections.abc import Iterable

from ckptcli.planning.actions import BACKWARD, FORWARD, FORWARD_ALL, FREE, Action
from ckptcli.planning.play.base import Played, refuse, unknown
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.chain import ChainProblem

STAGED = (FORWARD, FORWARD_ALL, BACKWARD)


def tensor(i: int) -> str:
    """What a schedule calls a_i."""
    return f"a{i}"


def saved(i: int) -> str:
    """What a schedule calls abar_i."""
    return f"abar{i}"


def play(problem: ChainProblem, actions: Iterable[Action]) -> Played:
    """What the schedule costs and takes.

    Raises:
        PlanError: an action that the rules exclude, or d_0 is not reached.
    """
    game = _Game(problem)
    index = -1
    for index, action in enumerate(actions):
        verb, *operands = action
        if verb in STAGED and len(operands) == 1 and isinstance(operands[0], int):
            if not 1 <= operands[0] <= problem.stages:
                refuse(index, action, "the chain has no such stage")
            why = game.run(str(verb), operands[0])
        elif verb == FREE and len(operands) == 1:
            why = game.free(str(operands[0]))
        else:
            unknown(index, action)
        if why:
            refuse(index, action, why)
    if game.gradient:
        refuse(index + 1, ("end",), f"stage {game.gradient} is not reversed")
    return Played(game.cost, game.peak, game.evaluations, "tape" if game.on_tape else "program")


class _Game:
    """What is resident, and the gradient that is at hand."""

    def __init__(self, problem: ChainProblem) -> None:
        self.problem = problem
        self.gradient = problem.stages
        self.resident = {tensor(0): problem.A[0]}
        self.live = self.peak = problem.A[0] + problem.D[-1]
        self.cost: Number = 0
        self.evaluations = 0
        self.on_tape = True
        self._reached = 0

    def run(self, verb: str, i: int) -> str:
        """Why the stage cannot run; "" once it has."""
        if not {tensor(i - 1), saved(i - 1)} & self.resident.keys():
            return f"neither a{i - 1} nor abar{i - 1} is resident"
        self.evaluations += 1
        if verb == BACKWARD:
            return self._backward(i)
        name, size = (
            (tensor(i), self.problem.A[i]) if verb == FORWARD else (saved(i), self.problem.B[i - 1])
        )
        if name in self.resident:
            return "it is resident"
        self.on_tape &= i > self._reached or self.gradient < self.problem.stages
        self._reached = max(i, self._reached)
        self.cost += self.problem.uf[i - 1]
        self._add(name, size, self.problem.of[i - 1])
        return ""

    def free(self, name: str) -> str:
        """Why it cannot be; "" once it is."""
        if name not in self.resident:
            return "it is not resident"
        self.live -= self.resident.pop(name)
        return ""

    def _backward(self, i: int) -> str:
        if i != self.gradient:
            return f"the gradient at hand is d{self.gradient}"
        if saved(i) not in self.resident:
            return f"abar{i} is not resident"
        D = self.problem.D
        self.cost += self.problem.ub[i - 1]
        self.live += D[i - 1]
        self.peak = max(self.peak, self.live + self.problem.ob[i - 1])
        self.live -= D[i]
        self.gradient = i - 1
        gone = [name for name in self.resident if int(name.lstrip("abr")) >= i]
        for name in gone:
            self.free(name)
        return ""

    def _add(self, name: str, size: int, workspace: int) -> None:
        self.resident[name] = size
        self.live += size
        self.peak = max(self.peak, self.live + workspace)
