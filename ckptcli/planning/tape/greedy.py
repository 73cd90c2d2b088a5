"""Greedy planning with its own count: sets of held values, grown and thinned by cost per byte.

Where values may be moved to the host it searches once more: beside each set those go there, while
there is room, whose bytes cost more to compute than to move there and back, dearest first.

It starts from what every named strategy holds. A set that fits is grown by what is dearest to
compute for its bytes, one that does not is thinned by what is cheapest, each by the longest prefix
of the ranking that fits; then single values are exchanged as long as that helps. Each set is tried
with several windows of retention.

Invariant: what is reported of a schedule is what the player gave for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ckptcli.planning.problems.base import Number
from ckptcli.planning.tape.drawing import FOR_EVER, draw_short
from ckptcli.planning.tape.player import PlayedBytes, Player
from ckptcli.planning.tape.schedule import Schedule
from ckptcli.planning.tape.starts import starts

Windows = tuple[tuple[int, int], ...]
"""(value, window) of those that have one of their own."""

Key = tuple[frozenset[int], int, Windows, frozenset[int]]
"""What is held, for how long what comes back is retained, and what goes to the host."""

WINDOWS = (FOR_EVER, 0, 2, 5, 12)
SCANNED = 8
"""Prefixes that are tried before the longest that fits is bisected."""

FEW_VALUES = 64
"""Up to so many, single values are exchanged and have windows of their own."""

EFFORT = 800_000
"""How many actions may be drawn and played, so that the same budget gives the same plan:
two seconds."""

MOST_COMPUTATIONS = 40
"""Of a schedule that computes more than so many times its values no more is drawn."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A schedule with what it costs beside the forward pass, and takes."""

    schedule: Schedule
    cost: Number
    played: PlayedBytes
    held: frozenset[int]
    window: int
    windows: Windows
    moved: frozenset[int]

    def merit(self, budget_bytes: int) -> tuple[int, Number, int, int]:
        """The less the better: what is above the budget, then cost, computations and peak."""
        over = max(0, self.played.peak_bytes - budget_bytes)
        count = sum(len(r.before) for r in self.schedule.retrievals)
        return over, self.cost, count, self.played.peak_bytes


class Greedy:
    """A search for one budget in bytes above parameters and input.

    Attributes:
        best: the best schedule so far, one that fits if any does.
        smallest: the schedule that peaks lowest.
    """

    def __init__(
        self,
        player: Player,
        budget_bytes: int,
        stop: Callable[[], bool] = lambda: False,
        effort: int = EFFORT,
    ) -> None:
        self.player = player
        self.model = player.model
        self.budget_bytes = budget_bytes
        self.best: Tried | None = None
        self.smallest: Tried | None = None
        self._asked_to_stop = stop
        self._effort = self._effort_each = effort
        self._a_try = len(self.model.requests) + len(player.forward)
        self._known: dict[Key, Tried | None] = {}
        self._ranking = sorted(self.model.values, key=self._worth)
        """Cheapest to do without first."""
        self._movable: Sequence[int] = ()
        """What goes to the host where it is not held, first what is worth it most."""

    def _worth(self, value: int) -> tuple[float, int]:
        size = self.model.memory_bytes(value)
        return (float(self.model.costs[value]) / size if size else 0.0), value

    def run(self) -> Tried | None:
        """Search; returns the best schedule that fits, if one was found."""
        self._search()
        for movable in self._orders_to_move():
            self._movable = movable
            self._search()
        return self.best if self.fits(self.best) else None

    def _orders_to_move(self) -> Iterator[Sequence[int]]:
        """What is dearer to compute than to move, then everything; each with half an effort of its
        own, so that nothing is worse than without a host.
        """
        model = self.model
        if not model.moving.host_bytes:
            return
        dearest = sorted(model.movable, key=self._worth, reverse=True)
        dear = [v for v in dearest if model.costs[v] > 2 * model.move_cost(v)]
        effort = self._effort_each // 2
        for movable in [dear, dearest] if dear != dearest else [dear]:
            self._effort = effort
            there_and_back = set(movable)
            self._ranking.sort(key=lambda v: self._worth_without(v, there_and_back))
            yield movable

    def _worth_without(self, value: int, moved: Collection[int]) -> tuple[float, int]:
        """Of a value that goes to the host if that is cheaper."""
        worth, _ = self._worth(value)
        if value in moved:
            worth = min(worth, 2 * float(self.model.moving.byte_cost))
        return worth, value

    def _search(self) -> None:
        """From every start with every window."""
        few = len(self.model.values) <= FEW_VALUES
        for window in WINDOWS:
            for name, held in starts(self.model):
                if self._stop() and self.best is not None:
                    break
                self._improve(held, window)
                if few and name in ("none", "balanced"):
                    self._descend(self._try(held, window))
        if few:
            self._descend(self.best)

    def run_smallest(self) -> None:
        """Look for the smallest peak alone: the sets of named strategies, with every window."""
        self._look_for_smallest()
        for movable in self._orders_to_move():
            self._movable = movable
            self._look_for_smallest()

    def _look_for_smallest(self) -> None:
        for window in WINDOWS:
            for _, held in starts(self.model):
                if self._stop():
                    return
                self._try(held, window)

    def everything(self) -> Tried:
        """What holds every value."""
        tried = self._try(self.model.values, FOR_EVER)
        assert tried is not None
        return tried

    def all_tried(self) -> list[Tried]:
        """Every schedule that was looked at."""
        return [tried for tried in self._known.values() if tried is not None]

    def fits(self, tried: Tried | None) -> bool:
        """Whether there is a schedule, and within the budget."""
        return tried is not None and tried.played.peak_bytes <= self.budget_bytes

    def _stop(self) -> bool:
        return self._effort <= 0 or self._asked_to_stop()

    def _try(self, held: Iterable[int], window: int) -> Tried | None:
        """The schedule of a set and of what goes to the host beside it; None if it would compute
        far too much.
        """
        values = frozenset(held)
        moved, useless = self._beside(values, ()), frozenset[int]()
        while True:
            tried = self._exactly(values, window, (), moved)
            idle = moved - tried.schedule.moved if tried else frozenset()
            if idle <= useless or len(useless) > FEW_VALUES:
                return tried
            useless |= idle
            more = self._beside(values, useless)
            if more <= moved:
                return tried
            moved = more

    def _beside(self, held: Collection[int], useless: Collection[int]) -> frozenset[int]:
        """What goes to the host beside values that are held, and leaves out what is of no use
        there.
        """
        room, moved = self.model.moving.host_bytes, []
        for value in self._movable:
            size = self.model.memory_bytes(value)
            if size <= room and value not in held and value not in useless:
                moved.append(value)
                room -= size
        return frozenset(moved)

    def _exactly(
        self, held: frozenset[int], window: int, windows: Windows, moved: frozenset[int]
    ) -> Tried | None:
        key = (held, window, windows, moved)
        if key not in self._known:
            self._known[key] = self._tried(*key)
        return self._known[key]

    def _tried(
        self, held: frozenset[int], window: int, windows: Windows, moved: frozenset[int]
    ) -> Tried | None:
        most = MOST_COMPUTATIONS * len(self.model.values)
        schedule = draw_short(self.model, held, window, dict(windows), most, moved)
        self._effort -= self._a_try
        if schedule is None:
            self._effort -= most
            return None
        self._effort -= 2 * sum(1 for _ in schedule.computations())
        cost, played = self.model.cost_of(schedule), self.player.play(schedule)
        tried = Tried(schedule, cost, played, held, window, windows, schedule.moved)
        self._note(tried)
        return tried

    def _note(self, tried: Tried) -> None:
        budget = self.budget_bytes
        if self.best is None or tried.merit(budget) < self.best.merit(budget):
            self.best = tried
        peak = tried.played.peak_bytes
        if self.smallest is None or peak < self.smallest.played.peak_bytes:
            self.smallest = tried

    def _improve(self, held: frozenset[int], window: int) -> None:
        """The longest prefix of the ranking that can be added, or the shortest that has to go."""
        if self.fits(self._try(held, window)):
            more = [value for value in reversed(self._ranking) if value not in held]
            self._bisect(more, lambda part: self._try(held.union(part), window), True)
        else:
            less = [value for value in self._ranking if value in held]
            self._bisect(less, lambda part: self._try(held.difference(part), window), False)

    def _bisect(
        self,
        values: Sequence[int],
        trial: Callable[[Sequence[int]], Tried | None],
        fits_short: bool,
    ) -> None:
        """Find where prefixes of `values` begin, or cease, to fit: a scan, then a bisection."""
        count = len(values)
        ends = sorted({round(count * step / SCANNED) for step in range(SCANNED + 1)})
        fitting = [end for end in ends if self.fits(trial(values[:end]))]
        if not fitting:
            return
        good = max(fitting) if fits_short else min(fitting)
        others = [end for end in ends if (end > good if fits_short else end < good)]
        if not others:
            return
        bad = min(others) if fits_short else max(others)
        while abs(bad - good) > 1 and not self._stop():
            middle = (good + bad) // 2
            if self.fits(trial(values[:middle])):
                good = middle
            else:
                bad = middle

    def _descend(self, tried: Tried | None) -> None:
        """Single values in or out, and windows of their own once it fits, while that helps."""
        budget = self.budget_bytes
        while tried is not None:
            best = tried
            for value in self._ranking:
                for trial in self._exchanges(tried, value):
                    if self._stop():
                        return
                    if trial is not None and trial.merit(budget) < best.merit(budget):
                        best = trial
            if best is tried:
                return
            tried = best

    def _exchanges(self, tried: Tried, value: int) -> Iterator[Tried | None]:
        window, windows, moved = tried.window, tried.windows, tried.moved
        yield self._exactly(tried.held ^ {value}, window, windows, moved - {value})
        if value in self._movable and self._has_room(moved ^ {value}):
            yield self._exactly(tried.held - {value}, window, windows, moved ^ {value})
        if self.fits(tried) and value not in tried.held:
            for other in WINDOWS:
                own = tuple(sorted((dict(windows) | {value: other}).items()))
                yield self._exactly(tried.held, window, own, moved)

    def _has_room(self, moved: Iterable[int]) -> bool:
        return sum(map(self.model.memory_bytes, moved)) <= self.model.moving.host_bytes
