"""The small sizes that give the laws: each twice the one before, and some between the last two.

Where the peak hardly grows, as where parameters are most of it, steps are longer: what counts is
the law of sizes at which the rest is most of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

FIRST = {"n": 16, "batch": 16}
"""Where the ladder begins; at 2 for a size that is counted in ones."""

ENOUGH_BYTES = 128 * 2**20
"""The ladder ends above this: larger passes tell laws no better."""

FEWEST = 3
"""Sizes."""

GROWN = 3
"""How many times the peak of the first size the last one has, of a program that is large whatever
the size is."""

FLAT, LONG_STEP, MOST_FLAT = 1.3, 8, 6
"""A peak that grows by less is followed by a long step; after so many of these it is taken not to
grow."""

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


def ladder(
    sizes: Sizes,
    climb: Callable[[int], int | None],
    limit_bytes: int,
    ahead: Callable[[Sequence[int]], None] | None = None,
) -> list[int]:
    """The sizes that `climb` could measure, going up; it gives the largest peak of any strategy.

    Four sizes between the last two follow: where another part of the pass sets the peak from some
    size on, they show the law that holds there. They are no round parts of them, at which what goes
    in steps would seem a line. `ahead` is told of these together, before they are climbed.
    """
    done = _going_up(sizes, climb, limit_bytes)
    if len(done) < 2:
        return done
    low, high = done[-2:]
    between = _between(low, high, sizes.step)
    if ahead is not None:
        ahead(between)
    return [*done, *(size for size in between if climb(size) is not None)]


def _going_up(sizes: Sizes, climb: Callable[[int], int | None], limit_bytes: int) -> list[int]:
    size, refused, flat = sizes.first, 0, 0
    done: dict[int, int] = {}
    while len(done) < MOST_STEPS and flat <= MOST_FLAT:
        peak_bytes, factor = climb(size), 2
        if peak_bytes is None:
            refused += 1
            if done or refused >= MOST_REFUSED:
                break
        else:
            before = next(reversed(done.values()), 0)
            done[size] = peak_bytes
            if _is_enough(list(done.values()), limit_bytes):
                break
            if peak_bytes < FLAT * before:
                factor, flat = LONG_STEP, flat + 1
        size *= factor
    return list(done)


def _is_enough(peaks: Sequence[int], limit_bytes: int) -> bool:
    if peaks[-1] > limit_bytes:
        return True
    return peaks[-1] > max(ENOUGH_BYTES, GROWN * peaks[0]) and len(peaks) >= FEWEST


def _between(low: int, high: int, step: int) -> list[int]:
    parts = {low + (high - low) * part // 7 // step * step for part in (1, 3, 5, 6)}
    return sorted(parts - {low, high})
