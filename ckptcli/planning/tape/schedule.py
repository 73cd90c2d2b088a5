"""A schedule that the tape can run: what is held, and what is done around each retrieval.

Invariant: positions are those of the recorded program; whoever runs the schedule on a pass of it
finds that pass's nodes by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ckptcli.errors import PlanError
from ckptcli.planning.actions import COMPUTE, FREE, Action

HOLD, RETRIEVE = "hold", "retrieve"


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A backward step asks for a value.

    Attributes:
        step: the step's node.
        node: the value's node.
        before: what is done first, `v` computes node v and `~v` lets go of it.
        after: what is let go of once the step has the value.
    """

    step: int
    node: int
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """What the tape does.

    Attributes:
        held: the nodes, of those whose values can be computed again, whose values are held.
        retrievals: in the order in which steps ask.
    """

    held: frozenset[int]
    retrievals: tuple[Retrieval, ...]

    @cached_property
    def computed(self) -> frozenset[int]:
        """The nodes that are computed again at least once."""
        return frozenset(
            move for retrieval in self.retrievals for move in retrieval.before if move >= 0
        )

    def computations(self) -> Iterator[int]:
        """Each node that is computed again, as often as it is."""
        for retrieval in self.retrievals:
            for move in retrieval.before:
                if move >= 0:
                    yield move

    def actions(self) -> Iterator[Action]:
        """The schedule as a list of actions, as a plan file has them."""
        for node in sorted(self.held):
            yield (HOLD, node)
        for retrieval in self.retrievals:
            yield from (_action(move) for move in retrieval.before)
            yield (RETRIEVE, retrieval.step, retrieval.node)
            yield from (_action(~node) for node in retrieval.after)


def schedule_of(actions: Iterable[Action]) -> Schedule:
    """The schedule that `Schedule.actions` wrote. What is let go of behind a retrieval and before
    anything else belongs to it.

    Raises:
        PlanError: an action that is none of a schedule.
    """
    held: set[int] = set()
    retrievals: list[Retrieval] = []
    moves: list[int] = []
    after: list[int] = []
    for index, action in enumerate(actions):
        verb, numbers = action[0], action[1:]
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise PlanError(f"action {index} of the plan, {list(action)}, names no nodes")
        match (verb, *numbers):
            case ("hold", int(node)):
                held.add(node)
            case ("compute", int(node)):
                _close(retrievals, after)
                moves.append(node)
            case ("free", int(node)):
                (after if retrievals and not moves else moves).append(~node)
            case ("retrieve", int(step), int(node)):
                _close(retrievals, after)
                retrievals.append(Retrieval(step, node, tuple(moves)))
                moves = []
            case _:
                raise PlanError(
                    f"action {index} of the plan is {list(action)}",
                    f"a schedule of the tape has {HOLD}, {COMPUTE}, {FREE} and {RETRIEVE}",
                )
    _close(retrievals, after)
    return Schedule(frozenset(held), tuple(retrievals))


def _action(move: int) -> Action:
    return (COMPUTE, move) if move >= 0 else (FREE, ~move)


def _close(retrievals: list[Retrieval], after: list[int]) -> None:
    """The last retrieval gets what is let go of behind it."""
    if after:
        last = retrievals[-1]
        freed = tuple(~move for move in after)
        retrievals[-1] = Retrieval(last.step, last.node, last.before, freed)
        after.clear()
