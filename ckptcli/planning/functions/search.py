"""The cheapest checkpoint of a function that fits a budget, and the frontier, by few programs.

A candidate is a place (the whole function, or each call of one that it calls) and what may be
saved there. What it holds and computes again is traced, which compiles nothing; what it takes is
what the compiler plans for it, which does not follow from that. So of each place those are compiled
that no other one beats in what is held and what is computed again.

Invariant: at most `MOST_TRACED` candidates are traced and `MOST_COMPILED` compiled; every peak is
the compiler's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from ckptcli.planning.problems.base import Number
from ckptcli.planning.unbeaten import unbeaten

MOST_TRACED = 64
MOST_COMPILED = 20


class NoSuchProgram(Exception):
    """The function is nothing under this candidate, or fails; the text says why."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint that could be.

    Attributes:
        strategy: as `-s` of `ckpt run --function` takes it.
        place: whose calls have it; "" for the whole.
        saved: what may be saved, as code; "" for nothing.
    """

    strategy: str
    place: str = ""
    saved: str = ""


@dataclass(frozen=True, slots=True)
class Traced:
    """What the program of a candidate asks for.

    Attributes:
        held_bytes: what is held from forward to backward.
        again: what it computes more than without checkpoints.
        program: equal for equal programs.
    """

    candidate: Candidate
    held_bytes: int
    again: Number
    program: Hashable


@dataclass(frozen=True, slots=True)
class Point:
    """A candidate that was compiled: the peak above its arguments, bytes; what it holds; its cost,
    what is computed again.
    """

    candidate: Candidate
    peak_bytes: int
    held_bytes: int
    cost: Number

    @property
    def rank(self) -> tuple[Number, int, int]:
        """Cheap ones first, then low ones."""
        return self.cost, self.peak_bytes, self.held_bytes


@dataclass(slots=True)
class Found:
    """What the programs came to.

    Attributes:
        points: every candidate that was compiled, the first without checkpoints.
        refused: candidates that are nothing here, and why.
        traced: how many were.
        passed_over: how many of those were not compiled though no other beats them.
    """

    points: list[Point] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    traced: int = 0
    passed_over: int = 0

    @property
    def none(self) -> Point:
        """Without checkpoints."""
        return self.points[0]

    @property
    def lowest(self) -> Point:
        """The least peak, the cheapest of these."""
        return min(self.points, key=lambda point: (point.peak_bytes, point.rank))

    def best(self, budget_bytes: int | None) -> Point | None:
        """The cheapest within the budget; None where none is, or there is no budget."""
        if budget_bytes is None:
            return None
        fitting = [point for point in self.points if point.peak_bytes <= budget_bytes]
        return min(fitting, key=lambda point: point.rank, default=None)

    def frontier(self) -> list[Point]:
        """Those that no other beats in peak and cost, cheap ones first."""
        return unbeaten(self.points, attrgetter("rank"), attrgetter("peak_bytes"))


def search(
    candidates: Sequence[Candidate],
    trace: Callable[[Candidate], Traced],
    compiled: Callable[[Traced], Point],
    tell: Callable[[str, int, int], None],
) -> Found:
    """Trace and compile; the first candidate is without checkpoints, and has to be there."""
    found = Found()
    known = _traced(candidates[:MOST_TRACED], trace, tell, found)
    chosen = [known[0], *_worth_compiling(known[1:], found)]
    for position, this in enumerate(chosen):
        tell("compile", position, len(chosen))
        try:
            found.points.append(compiled(this))
        except NoSuchProgram as reason:
            if this is known[0]:
                raise
            found.refused[this.candidate.strategy] = str(reason)
    return found


def _traced(
    candidates: Sequence[Candidate],
    trace: Callable[[Candidate], Traced],
    tell: Callable[[str, int, int], None],
    found: Found,
) -> list[Traced]:
    """Of equal programs the first."""
    known: dict[Hashable, Traced] = {}
    for position, candidate in enumerate(candidates):
        tell("trace", position, len(candidates))
        try:
            this = trace(candidate)
        except NoSuchProgram as reason:
            if not position:
                raise
            found.refused[candidate.strategy] = str(reason)
            continue
        found.traced += 1
        known.setdefault(this.program, this)
    return list(known.values())


def _worth_compiling(known: Sequence[Traced], found: Found) -> Iterator[Traced]:
    """Of each place those that none of it beats, evenly thinned where they are too many."""
    places = list(dict.fromkeys(this.candidate.place for this in known))
    share = (MOST_COMPILED - 1) // max(1, len(places))
    for place in places:
        kept = _unbeaten([this for this in known if this.candidate.place == place])
        found.passed_over += max(0, len(kept) - share)
        yield from thinned(kept, share)


def _unbeaten(known: Sequence[Traced]) -> list[Traced]:
    """What holds the most first."""
    return unbeaten(known, attrgetter("held_bytes", "again"), attrgetter("again"))[::-1]


def thinned(all_of_them: Sequence[Traced], most: int) -> list[Traced]:
    """At most so many, both ends among them."""
    last = len(all_of_them) - 1
    if last < most:
        return list(all_of_them)
    return [all_of_them[last * step // max(1, most - 1)] for step in range(most)]
