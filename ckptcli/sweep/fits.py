"""The largest size that fits: known from small sizes by law, proven by measuring it and the next.

A ladder of sizes, each twice the one before, gives the laws. What is left is a bisection by
measuring, whose next guess is the law's while it may be right.

Invariants: `proven` is said of sizes that were measured alone, the largest and the next; what is
not measured is said by law, with the largest workspace that was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ckptcli.sweep.laws.of_sweep import byte_laws
from ckptcli.sweep.laws.polynomial import Polynomial
from ckptcli.sweep.laws.power import Prediction

FIRST = {"n": 16, "batch": 16}
"""Where the ladder begins; at 2 for a size that is counted in ones."""

ENOUGH_BYTES = 128 * 2**20
"""The ladder ends above this: larger passes tell laws no better."""

MOST_STEPS = 24
LARGEST = 2**40
"""No size is larger."""

MOST_MEASURED = 60
"""Of one strategy after the ladder."""


@dataclass(frozen=True, slots=True)
class Peak:
    """What one pass took, bytes: of the ledger, and with the workspace of kernels."""

    ledger_bytes: int
    peak_bytes: int


Measure = Callable[[int, str], "Peak | None"]
"""The peak of a strategy at a size; None where the machine or the time does not allow it."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer for one strategy.

    Attributes:
        largest: the largest size that fits; 0 where none does, None where neither a law nor the
            machine tells.
        peak_bytes, next_peak_bytes: there and at the next size; None where not known.
        proven: whether both were measured.
        law: the polynomial of the ledger's peak, None where there is none.
        time: what a pass takes there; None where no times were taken.
    """

    strategy: str
    largest: int | None
    peak_bytes: int | None
    next_peak_bytes: int | None
    proven: bool
    law: Polynomial | None = None
    time: Prediction | None = None


def ladder(over: str, climb: Callable[[int], int | None], limit_bytes: int) -> list[int]:
    """The sizes that `climb` could measure, going up; it gives the largest peak of any strategy.

    Four sizes between the last two follow: where another part of the pass sets the peak from some
    size on, they show the law that holds there. They are no round parts of them, at which what goes
    in steps would seem a line.
    """
    size, done = FIRST.get(over, 2), list[int]()
    while len(done) < MOST_STEPS:
        peak_bytes = climb(size)
        if peak_bytes is None:
            break
        done.append(size)
        if peak_bytes > min(ENOUGH_BYTES, limit_bytes):
            break
        size *= 2
    if len(done) < 2:
        return done
    low, high = done[-2:]
    between = sorted({low + (high - low) * part // 7 for part in (1, 3, 5, 6)} - {low, high})
    return [*done, *(size for size in between if climb(size) is not None)]


def fit(
    strategy: str, over: str, known: Mapping[int, Peak], limit_bytes: int, measure: Measure
) -> Fit:
    """The largest size that fits; `known` are the peaks of the ladder."""
    search = _Search(strategy, over, dict(known), limit_bytes, measure)
    return search.answer()


class _Search:
    """What is known of one strategy while the end is looked for."""

    def __init__(
        self, strategy: str, over: str, known: dict[int, Peak], limit_bytes: int, measure: Measure
    ) -> None:
        self._strategy = strategy
        self._known = known
        self._limit_bytes = limit_bytes
        self._measure = measure
        self._workspace_bytes = max(
            (peak.peak_bytes - peak.ledger_bytes for peak in known.values()), default=0
        )
        self._law = _law(over, known)

    def answer(self) -> Fit:
        by_law = None if self._law is None else self._largest_by_law()
        for _ in range(MOST_MEASURED):
            low, high = self._bracket()
            if high == low + 1:
                return self._proven(low)
            size = self._next(low, high, by_law)
            if size is None or not self._learn(size):
                break
        return self._unproven(by_law)

    def _bracket(self) -> tuple[int, int | None]:
        """The largest size that is known to fit, and the smallest that is known not to."""
        fits = [s for s, peak in self._known.items() if peak.peak_bytes <= self._limit_bytes]
        others = [s for s, peak in self._known.items() if peak.peak_bytes > self._limit_bytes]
        return max(fits, default=0), min(others, default=None)

    def _next(self, low: int, high: int | None, by_law: int | None) -> int | None:
        """What to measure: what the law says and its neighbour, else the middle, else further up.

        Where the law is refuted by little, as by the workspace, steps away from it double.
        """
        if by_law is None:
            return min(2 * max(low, 1), LARGEST) if high is None else (low + high) // 2
        if low < by_law and (high is None or by_law < high):
            return by_law
        if by_law + 1 > low and (high is None or by_law + 1 < high):
            return by_law + 1
        if high is None:
            return low + max(1, low - by_law)
        if low >= by_law:
            return min(low + max(1, low - by_law), (low + high) // 2 if high > low + 2 else low + 1)
        return max(high - max(1, by_law - high + 1), (low + high + 1) // 2)

    def _learn(self, size: int) -> bool:
        """Measure a size; whether that could be done."""
        peak = self._measure(size, self._strategy)
        if peak is not None:
            self._known[size] = peak
        return peak is not None

    def _proven(self, largest: int) -> Fit:
        known = self._known.get(largest)
        return Fit(
            self._strategy,
            largest,
            None if known is None else known.peak_bytes,
            self._known[largest + 1].peak_bytes,
            True,
            self._law,
        )

    def _unproven(self, by_law: int | None) -> Fit:
        low, high = self._bracket()
        nothing = Fit(self._strategy, None, None, None, False, self._law)
        if by_law is None:
            return nothing
        largest = max(by_law, low) if high is None else min(max(by_law, low), high - 1)
        if largest >= LARGEST:
            return nothing
        peaks = [self._told_bytes(size) for size in (largest, largest + 1)]
        return replace(nothing, largest=largest, peak_bytes=peaks[0], next_peak_bytes=peaks[1])

    def _told_bytes(self, size: int) -> int | None:
        """The peak at a size, measured or by law."""
        if size in self._known:
            return self._known[size].peak_bytes
        return self._by_law_bytes(size) if size else None

    def _by_law_bytes(self, size: int) -> int:
        assert self._law is not None
        return int(self._law.at((size,))) + self._workspace_bytes

    def _largest_by_law(self) -> int:
        """By bisection: a peak grows with the size."""
        low, high = 0, 1
        while high < LARGEST and self._by_law_bytes(high) <= self._limit_bytes:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high) if self._by_law_bytes(middle) <= self._limit_bytes else (low, middle)
            )
        return low


def _law(over: str, known: Mapping[int, Peak]) -> Polynomial | None:
    """The law of the ledger's peak at the largest sizes of the ladder."""
    found = byte_laws((over,), {(size,): peak.ledger_bytes for size, peak in known.items()})
    _, _, law = found[-1]
    return None if law is None else law.polynomial


def fits_object(over: str, limit_bytes: int, fits: Sequence[Fit]) -> dict[str, object]:
    """The answer as plain data, schema `ckpt.fits/1`."""
    return {
        "schema": "ckpt.fits/1",
        "over": over,
        "device_memory_bytes": limit_bytes,
        "strategies": [_object(found) for found in fits],
    }


def _object(found: Fit) -> dict[str, object]:
    time = found.time
    return {
        "strategy": found.strategy,
        "largest": found.largest,
        "peak_bytes": found.peak_bytes,
        "next_peak_bytes": found.next_peak_bytes,
        "proven": found.proven,
        "time_s": None if time is None else time.time_s,
        "time_low_s": None if time is None else time.low_s,
        "time_high_s": None if time is None else time.high_s,
        "time_extrapolated": None if time is None else time.is_extrapolated,
        "law": None if found.law is None else found.law.text,
    }
