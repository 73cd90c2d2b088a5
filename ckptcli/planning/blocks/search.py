"""The cheapest set of blocks that fits a budget, and the frontier of all budgets, by few passes.

One pass without checkpoints, one for each block alone, one with all of them; these say what every
set should take. What is answered is measured: a set that turns out higher than it should has the
next one sought below by so much.

Invariant: at most two passes a block and `MORE_PASSES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from ckptcli.planning.blocks.sets import BlockSet, NoSuchSet, Prediction, SetPass
from ckptcli.planning.problems.base import Number
from ckptcli.planning.unbeaten import unbeaten

MORE_PASSES = 10
MOST_TRIES = 6
"""Sets for the budget itself; the rest is the frontier's."""

Measure = Callable[[BlockSet], SetPass]
"""A pass with these blocks under checkpoints; `NoSuchSet` where there is none."""

Tell = Callable[[int, int], None]
"""Gets how many passes of at most how many are done."""


@dataclass(slots=True)
class Found:
    """What the passes came to.

    Attributes:
        none: the pass without checkpoints.
        alone: of each block the pass with it alone under a checkpoint.
        refused: blocks that cannot be, and why.
        passes: of all sets that were measured, in order.
        predicted_bytes: what the ledger's peak of a set should have been, where that was known
            before.
        best: the cheapest of them within the budget; None where none is.
    """

    none: SetPass
    alone: dict[int, SetPass] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    passes: dict[BlockSet, SetPass] = field(default_factory=dict)
    predicted_bytes: dict[BlockSet, int] = field(default_factory=dict)
    best: SetPass | None = None

    @property
    def lowest(self) -> SetPass:
        """The pass with the least peak, of the fewest blocks."""
        return min(self.passes.values(), key=lambda p: (p.peak_bytes, len(p.chosen)))

    def freed_bytes(self, block: int) -> int:
        """What is not held any more where this block alone is under a checkpoint."""
        return self.none.held_bytes - self.alone[block].held_bytes


class Search:
    """Passes over sets of `len(costs)` blocks, bounded."""

    def __init__(self, measure: Measure, costs: Sequence[Number], tell: Tell) -> None:
        self._measure, self._tell = measure, tell
        self._costs = costs
        self.most_passes = 2 * len(costs) + MORE_PASSES
        self._done = 0

    @cached_property
    def none(self) -> SetPass:
        """The first pass, without checkpoints; before `run` where it sets the budget."""
        return self._pass(frozenset())

    def run(self, budget_bytes: int | None) -> Found:
        """Measure what the answer needs, and with what is left of the passes the frontier."""
        found = Found(self.none)
        found.passes[frozenset()] = found.none
        for block in range(len(self._costs)):
            try:
                found.alone[block] = self._pass(frozenset({block}))
                found.passes[frozenset({block})] = found.alone[block]
            except NoSuchSet as reason:
                found.refused[block] = str(reason)
        if found.alone:
            self._search(found, budget_bytes)
        if budget_bytes is not None:
            fitting = [p for p in found.passes.values() if p.peak_bytes <= budget_bytes]
            found.best = min(fitting, key=self._rank, default=None)
        return found

    def _rank(self, of: SetPass) -> tuple[Number, int, int]:
        return self.cost(of.chosen), len(of.chosen), of.peak_bytes

    def cost(self, chosen: BlockSet) -> Number:
        """What computing these blocks again costs."""
        return sum(self._costs[block] for block in chosen)

    def frontier(self, found: Found) -> list[SetPass]:
        """The measured sets that no other one beats in peak and cost, dear ones last."""
        return unbeaten(found.passes.values(), self._rank, attrgetter("peak_bytes"))

    def _search(self, found: Found, budget_bytes: int | None) -> None:
        everything = frozenset(found.alone)
        if self._tried(found, everything, None) is None:
            return
        prediction = Prediction(
            found.none,
            found.passes[everything],
            {block: found.freed_bytes(block) for block in everything},
            dict(enumerate(self._costs)),
        )
        if budget_bytes is not None:
            self._fit(found, prediction, budget_bytes)
        self._tried(found, prediction.lowest(), prediction)
        most, least = found.none.ledger_bytes, found.lowest.ledger_bytes
        steps = self.most_passes - self._done
        for step in range(1, steps):
            target = most - (most - least) * step // steps
            chosen = prediction.cheapest(target)
            if chosen is not None:
                self._tried(found, chosen, prediction)

    def _fit(self, found: Found, prediction: Prediction, budget_bytes: int) -> None:
        """Try sets until one fits, each sought as much lower as the one before was too high."""
        target = budget_bytes
        for _ in range(MOST_TRIES):
            chosen = prediction.cheapest(target)
            if chosen is None:
                return
            made = self._tried(found, chosen, prediction)
            if made is not None and made.peak_bytes <= budget_bytes:
                return
            above = 1 if made is None else made.peak_bytes - budget_bytes
            target = min(target, prediction.peak_bytes(chosen)) - max(1, above)

    def _tried(
        self, found: Found, chosen: BlockSet, prediction: Prediction | None
    ) -> SetPass | None:
        """The pass of a set, measured once; None where there is none, or no pass is left."""
        if chosen not in found.passes and self._done < self.most_passes:
            try:
                found.passes[chosen] = self._pass(chosen)
            except NoSuchSet:
                return None
            if prediction is not None:
                found.predicted_bytes[chosen] = prediction.peak_bytes(chosen)
        return found.passes.get(chosen)

    def _pass(self, chosen: BlockSet) -> SetPass:
        self._tell(self._done, self.most_passes)
        self._done += 1
        return self._measure(chosen)
