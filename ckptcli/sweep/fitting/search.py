"""The largest size that fits: told by law from small sizes, then measured, it and the next.

What the law leaves open, as the workspace of kernels, is taken from the nearest size that was
measured, so that few are; without a law, or where it ends, from the line between the sizes next to
the limit, and by bisection. A peak is taken to grow with the size.

Invariants: `proven` is said of sizes that were measured, the largest and the next; what is not
measured is said by law, with the largest workspace that was seen. However the peaks go, the search
ends after `MOST_MEASURED` sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ckptcli.sweep.fitting.answer import Fit, Peak, Refused
from ckptcli.sweep.fitting.ladder import Sizes
from ckptcli.sweep.laws.of_sweep import byte_laws
from ckptcli.sweep.laws.polynomial import Polynomial
from ckptcli.units import count

LARGEST = 2**40
"""No size is larger, in steps."""

MOST_MEASURED = 40
"""Of one strategy after the ladder."""

MOST_GUESSES = 6
"""By law, of these."""

Measure = Callable[[int], "Peak | Refused"]
"""The peak at a size, or why the machine, the time or the program does not give it."""


def fit(
    strategy: str,
    sizes: Sizes,
    known: Mapping[int, Peak],
    limit_bytes: int,
    measure: Measure,
    confirm: Measure | None = None,
) -> Fit:
    """The largest size that fits; `known` are the peaks of the ladder.

    `confirm` measures an answer that is known by a plan alone.
    """
    search = _Search(strategy, sizes, dict(known), limit_bytes, measure, confirm)
    return search.answer()


class _Search:
    """What is known of one strategy while the end is looked for; sizes are counted in steps."""

    def __init__(
        self,
        strategy: str,
        sizes: Sizes,
        known: dict[int, Peak],
        limit_bytes: int,
        measure: Measure,
        confirm: Measure | None,
    ) -> None:
        self._strategy = strategy
        self._sizes = sizes
        self._known = {size // sizes.step: peak for size, peak in known.items()}
        self._limit_bytes = limit_bytes
        self._measure = measure
        self._confirm = confirm
        self._looked_at = self._guesses = self._open = 0
        self._why = ""
        self._law = _law(sizes.over, known)

    def answer(self) -> Fit:
        while not self._is_over():
            low, high = self._bracket()
            if high == low + 1:
                if self._is_confirmed(low):
                    return self._proven(low)
                continue
            place = self._next(low, high, self._largest_by_law())
            if place >= LARGEST or not self._learn(place):
                break
        return self._unproven(self._largest_by_law())

    def _is_over(self) -> bool:
        if self._looked_at < MOST_MEASURED:
            return False
        self._why = f"the search ended after {count(self._looked_at, 'size')}"
        return True

    def _bracket(self) -> tuple[int, int | None]:
        """The largest place that is known to fit, and the smallest that is known not to."""
        fits = [s for s, peak in self._known.items() if peak.peak_bytes <= self._limit_bytes]
        others = [s for s, peak in self._known.items() if peak.peak_bytes > self._limit_bytes]
        high = min(others, default=None)
        return max((s for s in fits if high is None or s < high), default=0), high

    def _next(self, low: int, high: int | None, by_law: int | None) -> int:
        """What to measure: what the law says and the size after it. Where the law is refuted, as
        by another part of the pass that sets the peak from some size on, the line through the ends
        of what is open; its middle where that did not leave half of it.
        """
        if by_law is not None and self._guesses < MOST_GUESSES:
            for place in (by_law, by_law + 1):
                if low < place and (high is None or place < high):
                    self._guesses += 1
                    return place
        if high is None:
            return 2 * max(low, 1)
        is_slow = 2 * (high - low) > self._open > 0
        self._open = 0 if is_slow else high - low
        if low not in self._known or is_slow:
            return (low + high) // 2
        return min(max(self._on_the_line(low, high), low + 1), high - 1)

    def _on_the_line(self, low: int, high: int) -> int:
        """The largest place that fits, or that after it where this is known to."""
        below, above = self._known[low].peak_bytes, self._known[high].peak_bytes
        return low + (self._limit_bytes - below) * (high - low) // (above - below)

    def _learn(self, place: int) -> bool:
        """Measure a place; whether that could be done."""
        self._looked_at += 1
        found = self._measure(place * self._sizes.step)
        if isinstance(found, Refused):
            self._why = f"{self._sizes.over} = {place * self._sizes.step}: {found.reason}"
            return False
        self._known[place] = found
        return True

    def _is_confirmed(self, place: int) -> bool:
        """Whether what was planned takes no more than the limit where it is run; one that does is
        known not to fit. What cannot be run is said to be planned.
        """
        if self._confirm is None or not place:
            return True
        self._looked_at += 1
        found = self._confirm(place * self._sizes.step)
        if isinstance(found, Refused):
            self._why = f"{self._sizes.over} = {place * self._sizes.step}: {found.reason}"
            return True
        self._known[place] = replace(found, is_least=False)
        return found.peak_bytes <= self._limit_bytes

    def _proven(self, place: int) -> Fit:
        here, after = self._known.get(place), self._known[place + 1]
        known = [peak for peak in (here, after) if peak is not None]
        is_least = after.is_least and not self._why
        how = "measured" if all(peak.has_values for peak in known) else "by shapes"
        return replace(
            self._said(),
            largest=place * self._sizes.step,
            peak_bytes=None if here is None else here.peak_bytes,
            next_peak_bytes=after.peak_bytes,
            proven=is_least,
            how=how if is_least else "planned",
            why=self._why if is_least or self._why else "another plan for the next size may exist",
        )

    def _said(self) -> Fit:
        """What is said whatever the answer is."""
        low, _ = self._bracket()
        return Fit(
            self._strategy,
            None,
            None,
            None,
            False,
            law=self._law,
            measured_up_to=low * self._sizes.step,
            looked_at=self._looked_at,
            why=self._why,
        )

    def _unproven(self, by_law: int | None) -> Fit:
        low, high = self._bracket()
        if by_law is None or (high is None and by_law >= LARGEST):
            return replace(self._said(), why=self._why_none(by_law))
        largest = max(by_law, low) if high is None else min(max(by_law, low), high - 1)
        here, after = (self._told_bytes(place) for place in (largest, largest + 1))
        return replace(
            self._said(),
            largest=largest * self._sizes.step,
            peak_bytes=here,
            next_peak_bytes=after,
            how="by law",
        )

    def _why_none(self, by_law: int | None) -> str:
        """Why there is no answer, and what is known all the same."""
        over, step = self._sizes.over, self._sizes.step
        low, high = self._bracket()
        if by_law is not None:
            if self._by_law_bytes(LARGEST, 0) == self._by_law_bytes(1, 0):
                return f"its peak does not grow with {over}"
            return f"by law {over} = {LARGEST // 2 * step} still fits; nothing larger is looked at"
        known = f"{over} = {low * step} fits" if low else f"no {over} was found to fit"
        known += "" if high is None else f", {over} = {high * step} does not"
        return f"its peak follows no polynomial in {over}; {known}. {self._why}".rstrip()

    def _told_bytes(self, place: int) -> int | None:
        """The peak at a place, measured or by law."""
        if place in self._known:
            return self._known[place].peak_bytes
        return self._by_law_bytes(place, self._beyond_bytes(place)) if place else None

    def _by_law_bytes(self, place: int, beyond_bytes: int) -> int:
        assert self._law is not None
        return int(self._law.at((place * self._sizes.step,))) + beyond_bytes

    def _beyond_bytes(self, place: int) -> int:
        """What the nearest place that is known has beyond the law."""
        near = min(self._known, key=lambda known: abs(known - place))
        return max(0, self._known[near].peak_bytes - self._by_law_bytes(near, 0))

    def _largest_by_law(self) -> int | None:
        """None without a law. First without what is beyond it, then with that of the place nearest
        to what this gave.
        """
        if self._law is None:
            return None
        first = self._largest_with(max(map(self._beyond_bytes, self._known)))
        return first if first >= LARGEST else self._largest_with(self._beyond_bytes(first))

    def _largest_with(self, beyond_bytes: int) -> int:
        """By bisection: a peak grows with the size."""
        low, high = 0, 1
        while high < LARGEST and self._by_law_bytes(high, beyond_bytes) <= self._limit_bytes:
            low, high = high, 2 * high
        while high - low > 1 and high < LARGEST:
            middle = (low + high) // 2
            fits = self._by_law_bytes(middle, beyond_bytes) <= self._limit_bytes
            low, high = (middle, high) if fits else (low, middle)
        return high if high >= LARGEST else low


def _law(over: str, known: Mapping[int, Peak]) -> Polynomial | None:
    """The law of the ledger's peak at the largest sizes of the ladder."""
    found = byte_laws((over,), {(size,): peak.ledger_bytes for size, peak in known.items()})
    _, _, law = found[-1]
    return None if law is None else law.polynomial
