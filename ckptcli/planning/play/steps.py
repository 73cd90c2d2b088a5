"""Plays a schedule on equal steps; `problems/steps.py` has the rules.

A slot holds a state or the tape of a step. The live state is in no slot. `advance` goes from state
i to state j without a tape; `tape` goes from i - 1 to i and keeps the tape; `reverse` of step i
makes the tape and uses it at once; `reverse_tape` uses one that is kept, which is then gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ckptcli.planning.actions import (
    ADVANCE,
    DISK,
    FREE,
    RESTORE,
    REVERSE,
    REVERSE_TAPE,
    STORE,
    TAPE,
    Action,
)
from ckptcli.planning.play.base import Played, refuse, unknown
from ckptcli.planning.problems.steps import StepsProblem


class Game:
    """Slots, disk, the live state, and the step that is reversed next. Fed action by action."""

    def __init__(self, problem: StepsProblem) -> None:
        self.problem = problem
        self.left = problem.n
        self.live: int | None = 0
        self.states: dict[str | int, set[int]] = {"": set(), DISK: set()}
        self.tapes: set[int] = set()
        self.evaluations = self.peak = self.disk = self.writes = self.reads = 0
        self.actions = 0

    def do(self, action: Action) -> None:
        """Play one action.

        Raises:
            PlanError: it is excluded.
        """
        verb, *operands = action
        rule = _RULES.get(str(verb))
        where = operands.pop() if operands and operands[-1] == DISK else ""
        if rule is None or not all(isinstance(operand, int) for operand in operands):
            unknown(self.actions, action)
        if len(operands) != (2 if verb == ADVANCE else 1):
            unknown(self.actions, action)
        why = rule(self, *operands, where)
        if why:
            refuse(self.actions, action, why)
        self.actions += 1

    def end(self) -> Played:
        """What it cost and took.

        Raises:
            PlanError: a step is not reversed.
        """
        if self.left:
            refuse(self.actions, ("end",), f"step {self.left} is not reversed")
        of = self.problem
        stored = self.writes * of.write_cost + self.reads * of.read_cost
        cost = self.evaluations - of.n + stored
        return Played(cost, self.peak, self.evaluations, "tape", self.disk)

    def advance(self, start: int, stop: int, where: str) -> str:
        """From the live state `start` to `stop`."""
        if self.live != start or not start < stop <= self.left:
            return f"the live state is {self.live}, and step {self.left} is reversed next"
        self.evaluations += stop - start
        self.live = stop
        return ""

    def store(self, state: int, where: str) -> str:
        """The live state into a slot, or onto the disk."""
        if self.live != state:
            return f"the live state is {self.live}"
        self.states[where].add(state)
        self.writes += where == DISK
        self._count()
        return ""

    def restore(self, state: int, where: str) -> str:
        """A stored state becomes the live one, and stays where it is."""
        if state not in self.states[where]:
            return "it is not stored there"
        self.live = state
        self.reads += where == DISK
        return ""

    def free(self, state: int, where: str) -> str:
        """A stored state is forgotten."""
        if state not in self.states[where]:
            return "it is not stored there"
        self.states[where].remove(state)
        return ""

    def tape(self, step: int, where: str) -> str:
        """A step is evaluated and its tape kept in a slot."""
        if self.live != step - 1 or step > self.left:
            return f"the live state is {self.live}"
        self.evaluations += 1
        self.live = step
        self.tapes.add(step)
        self._count()
        return ""

    def reverse(self, step: int, where: str) -> str:
        """The last step that is not reversed, from the live state before it."""
        if step != self.left or self.live != step - 1:
            return f"the live state is {self.live}, and step {self.left} is reversed next"
        self.evaluations += 1
        self.left -= 1
        return ""

    def reverse_tape(self, step: int, where: str) -> str:
        """The same from its tape; a state that lives stays."""
        if step != self.left or step not in self.tapes:
            return f"step {self.left} is reversed next, and the tapes are {sorted(self.tapes)}"
        self.tapes.remove(step)
        self.left -= 1
        return ""

    def _count(self) -> None:
        self.peak = max(self.peak, len(self.states[""]) + len(self.tapes))
        self.disk = max(self.disk, len(self.states[DISK]))


_RULES: dict[str, Callable[..., str]] = {
    ADVANCE: Game.advance,
    STORE: Game.store,
    RESTORE: Game.restore,
    FREE: Game.free,
    TAPE: Game.tape,
    REVERSE: Game.reverse,
    REVERSE_TAPE: Game.reverse_tape,
}


def play(problem: StepsProblem, actions: Iterable[Action]) -> Played:
    """What the schedule costs and takes.

    Raises:
        PlanError: an action that the rules exclude, or a step is not reversed.
    """
    game = Game(problem)
    for action in actions:
        game.do(action)
    return game.end()
