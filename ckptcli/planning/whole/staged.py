"""A problem whose events have an order: what may be computed again before each, and what it takes.

The form that whole-graph search takes, of a dag in one order of first computations and of a program
in the order of its backward steps alike. In a stage values are computed again, in the order of
their numbers and each at most once, then comes its event: a first computation, or the moments of a
backward step.

Invariant: a value's parents have lower numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ckptcli.planning.problems.base import Number

FORWARD = -1
"""Where a value is first made that the forward pass makes: holding it is free of cost."""


@dataclass(frozen=True, slots=True)
class Value:
    """What may be resident.

    Attributes:
        cost: of computing it once more.
        size: of the memory that it brings.
        rise: the least that has to be free to compute it, its own size included.
        parents: what it is computed from.
        lies_in: the parent in whose memory it lies; None where it has its own.
        first: the stage that makes it first, which is sure to; or `FORWARD`.
        until: the last stage in which it may have a use.
        is_once: whether it is not computed again.
        stays: whether it is resident from its first computation to the end.
    """

    cost: Number
    size: int
    rise: int
    parents: tuple[int, ...]
    lies_in: int | None
    first: int
    until: int
    is_once: bool = False
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """A part of a backward step: what is live beside values, and the values it needs."""

    takes: int
    needs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Before an event, and it.

    Attributes:
        takes: what is live beside values while others are computed.
        moments: of the event.
        computes: whether anything may be computed again.
    """

    takes: int
    moments: tuple[Moment, ...] = ()
    computes: bool = True


@dataclass(frozen=True, slots=True)
class Together:
    """Held values of which `takes` units more are live at a moment of the forward pass.

    Attributes:
        takes: what is live beside them.
        blocks: the size of each block of memory and the values that lie in it.
    """

    takes: int
    blocks: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Staged:
    """The problem.

    Attributes:
        values: by number.
        stages: in order.
        forward: what held values may take together.
    """

    values: Sequence[Value]
    stages: Sequence[Stage]
    forward: Sequence[Together] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What is computed.

    Attributes:
        held: values that stay from the forward pass on.
        made: (stage, value) of all that is computed again, in order.
    """

    held: frozenset[int]
    made: tuple[tuple[int, int], ...]


def last_uses(parents: Sequence[Sequence[int]], needed: Sequence[Collection[int]]) -> list[int]:
    """Of each value the last stage that needs it or what is computed from it; -1 for none."""
    until = [FORWARD] * len(parents)
    for stage, values in enumerate(needed):
        for value in values:
            until[value] = stage
    for value in reversed(range(len(parents))):
        for parent in parents[value]:
            until[parent] = max(until[parent], until[value])
    return until


def without_waste(staged: Staged, answer: Answer) -> Answer:
    """The answer without what is computed again for no use."""
    values = staged.values
    made: list[tuple[int, int]] = []
    wanted: set[int] = set()
    by_stage: dict[int, list[int]] = {}
    for stage, value in answer.made:
        by_stage.setdefault(stage, []).append(value)
    firsts = {value.first: value for value in values if value.first != FORWARD}
    for stage in reversed(range(len(staged.stages))):
        for moment in staged.stages[stage].moments:
            wanted.update(moment.needs)
        if stage in firsts:
            wanted.update(firsts[stage].parents)
        for value in reversed(by_stage.get(stage, [])):
            if value in wanted:
                wanted.discard(value)
                wanted.update(values[value].parents)
                made.append((stage, value))
    return Answer(answer.held & wanted, tuple(reversed(made)))
