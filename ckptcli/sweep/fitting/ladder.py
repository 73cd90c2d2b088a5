"""The small sizes that give the laws: each twice the one before, and some between the last two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FIRST = {"n": 16, "batch": 16}
"""Where the ladder begins; at 2 for a size that is counted in ones."""

ENOUGH_BYTES = 128 * 2**20
"""The ladder ends above this: larger passes tell laws no better."""

FEWEST = 3
"""Sizes, of a program that is large whatever the size is."""

MOST_STEPS = 24
MOST_REFUSED = 6
"""At the beginning, by a program that a small size is too small for."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is made larger: the name of it, and what every size is a multiple of."""

    over: str
    step: int = 1

    @property
    def first(self) -> int:
        """The smallest of the ladder."""
        begin = FIRST.get(self.over, 2)
        return -(-begin // self.step) * self.step


def ladder(sizes: Sizes, climb: Callable[[int], int | None], limit_bytes: int) -> list[int]:
    """The sizes that `climb` could measure, going up; it gives the largest peak of any strategy.

    Four sizes between the last two follow: where another part of the pass sets the peak from some
    size on, they show the law that holds there. They are no round parts of them, at which what goes
    in steps would seem a line.
    """
    size, done, refused = sizes.first, list[int](), 0
    while len(done) < MOST_STEPS:
        peak_bytes = climb(size)
        if peak_bytes is None:
            refused += 1
            if done or refused >= MOST_REFUSED:
                break
        else:
            done.append(size)
            if peak_bytes > limit_bytes or (peak_bytes > ENOUGH_BYTES and len(done) >= FEWEST):
                break
        size *= 2
    if len(done) < 2:
        return done
    low, high = done[-2:]
    between = _between(low, high, sizes.step)
    return [*done, *(size for size in between if climb(size) is not None)]


def _between(low: int, high: int, step: int) -> list[int]:
    parts = {low + (high - low) * part // 7 // step * step for part in (1, 3, 5, 6)}
    return sorted(parts - {low, high})
