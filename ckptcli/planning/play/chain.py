"""Plays a schedule on a chain; `problems/chain.py` has the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
        if len(action) != 2:
            unknown(index, action)
        verb, operand = action
        if verb in STAGED and isinstance(operand, int):
            if not 1 <= operand <= problem.stages:
                refuse(index, action, "the chain has no such stage")
            why = game.run(str(verb), operand)
        elif verb == FREE:
            why = game.free(str(operand))
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
        count = problem.stages + 1
        self.has_tensor = [True, *[False] * problem.stages]
        self.has_saved = [False] * count
        self.live = self.peak = problem.A[0] + problem.D[-1]
        self.cost: Number = 0
        self.evaluations = 0
        self.on_tape = True
        self._reached = 0

    def run(self, verb: str, i: int) -> str:
        """Why the stage cannot run; "" once it has."""
        if i > self.gradient:
            return f"the gradient at hand is d{self.gradient}"
        if not (self.has_tensor[i - 1] or self.has_saved[i - 1]):
            return f"neither a{i - 1} nor abar{i - 1} is resident"
        self.evaluations += 1
        if verb == BACKWARD:
            return self._backward(i)
        has, sizes, place = self._of(verb == FORWARD, i)
        if has[i]:
            return "it is resident"
        has[i] = True
        self.on_tape &= i > self._reached or self.gradient < self.problem.stages
        self._reached = max(i, self._reached)
        self.cost += self.problem.uf[i - 1]
        self.live += sizes[place]
        self.peak = max(self.peak, self.live + self.problem.of[i - 1])
        return ""

    def free(self, name: str) -> str:
        """Why it cannot be; "" once it is."""
        is_tensor = not name.startswith("abar")
        text = name.removeprefix("a" if is_tensor else "abar")
        i = int(text) if text.isdecimal() and len(text) < 20 else -1
        has, sizes, place = self._of(is_tensor, i)
        if not 0 <= i < len(has) or not has[i]:
            return "it is not resident"
        has[i] = False
        self.live -= sizes[place]
        return ""

    def _of(self, is_tensor: bool, i: int) -> tuple[list[bool], Sequence[int], int]:
        """Which are resident, their sizes, and the place of a_i or abar_i among these."""
        if is_tensor:
            return self.has_tensor, self.problem.A, i
        return self.has_saved, self.problem.B, i - 1

    def _backward(self, i: int) -> str:
        if i != self.gradient:
            return f"the gradient at hand is d{self.gradient}"
        if not self.has_saved[i]:
            return f"abar{i} is not resident"
        D = self.problem.D
        self.cost += self.problem.ub[i - 1]
        self.live += D[i - 1]
        self.peak = max(self.peak, self.live + self.problem.ob[i - 1])
        self.live -= D[i] + self.problem.B[i - 1]
        if self.has_tensor[i]:
            self.live -= self.problem.A[i]
        self.has_tensor[i] = self.has_saved[i] = False
        self.gradient = i - 1
        return ""
