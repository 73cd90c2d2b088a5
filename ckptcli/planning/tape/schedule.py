"""A schedule that the tape can run: what is held, what is moved to the host, and what is done
around each retrieval.

Invariants: a value that is moved is neither held nor computed again, it is brought back; positions
are those of the recorded program, by which whoever runs the schedule on a pass of it finds that
pass's nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ckptcli.errors import PlanError
from ckptcli.planning.actions import COMPUTE, FREE, FROM_HOST, HOLD, RETRIEVE, TO_HOST, Action


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A backward step asks for a value.

    Attributes:
        step: the step's node.
        node: the value's node.
        before: what is done first, `v` computes node v, or brings it back if it is on the host, and
            `~v` lets go of it.
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
        moved: the nodes whose values are moved to the host when they are made, and let go of there
            when they were brought back for the last time.
    """

    held: frozenset[int]
    retrievals: tuple[Retrieval, ...]
    moved: frozenset[int] = frozenset()

    @cached_property
    def computed(self) -> frozenset[int]:
        """The nodes that are computed again at least once."""
        return frozenset(self.computations())

    @cached_property
    def returns(self) -> Counter[int]:
        """How often each node's value is brought back."""
        return Counter(move for move in self._made() if move in self.moved)

    def computations(self) -> Iterator[int]:
        """Each node that is computed again, as often as it is."""
        return (move for move in self._made() if move not in self.moved)

    def _made(self) -> Iterator[int]:
        for retrieval in self.retrievals:
            for move in retrieval.before:
                if move >= 0:
                    yield move

    def actions(self) -> Iterator[Action]:
        """The schedule as a list of actions, as a plan file has them."""
        for node in sorted(self.held):
            yield (HOLD, node)
        for node in sorted(self.moved):
            yield (TO_HOST, node)
        for retrieval in self.retrievals:
            yield from map(self._action, retrieval.before)
            yield (RETRIEVE, retrieval.step, retrieval.node)
            yield from ((FREE, node) for node in retrieval.after)

    def _action(self, move: int) -> Action:
        if move < 0:
            return (FREE, ~move)
        return (FROM_HOST if move in self.moved else COMPUTE, move)


def schedule_of(actions: Iterable[Action]) -> Schedule:
    """The schedule that `Schedule.actions` wrote. What is let go of behind a retrieval and before
    anything else belongs to it.

    Raises:
        PlanError: an action that is none of a schedule, or is not one of a value that is moved.
    """
    held: set[int] = set()
    moved: set[int] = set()
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
            case ("to_host", int(node)) if not retrievals and not moves:
                moved.add(node)
            case ("compute" | "from_host", int(node)) if (verb == FROM_HOST) == (node in moved):
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
                    f"a schedule of the tape has {HOLD}, {TO_HOST}, {COMPUTE}, {FROM_HOST} of what "
                    f"was moved, {FREE} and {RETRIEVE}",
                )
    _close(retrievals, after)
    return Schedule(frozenset(held), tuple(retrievals), frozenset(moved))


def _close(retrievals: list[Retrieval], after: list[int]) -> None:
    """The last retrieval gets what is let go of behind it."""
    if after:
        last = retrievals[-1]
        freed = tuple(~move for move in after)
        retrievals[-1] = Retrieval(last.step, last.node, last.before, freed)
        after.clear()
