"""Sets of blocks under checkpoints: what a pass with one takes, and what that says of the others.

A pass is cut into stages, each within one block or between blocks. At a stage, what a block holds
is there from its forward to its backward, unless it is under a checkpoint: the peak of a set is the
highest stage, without what its blocks free by then, and with what computing a block again takes on
top in its own stages. That is a prediction: a set whose figures are told is measured.

Invariant: bytes are above parameters and input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from ckptcli.planning.problems.base import Number

BlockSet = frozenset[int]
"""Blocks under checkpoints, by their places."""

ALL_SETS_OF = 12
"""Up to so many blocks every set is predicted; of more, sets are thinned out of the whole."""


class NoSuchSet(Exception):
    """No pass with these blocks under checkpoints; the text says why."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of a pass.

    Attributes:
        phase: forward, backward or step; computing again is backward's.
        block: whose forward or backward it is; None between blocks.
        peak_bytes: the most that is live in it.
        held: the blocks all of whose saved tensors are there then.
    """

    phase: str
    block: int | None
    peak_bytes: int
    held: BlockSet = frozenset()


@dataclass(frozen=True, slots=True)
class SetPass:
    """One measured pass with a set of blocks under checkpoints.

    Attributes:
        peak_bytes: the most that is there at once, what kernels take for themselves included.
        held_bytes: what is saved from forward to backward.
        stages: of the pass.
        held_of: of each block what it makes of that; 0 where it has no entry.
        bytes_by_why: what was live at the peak, by what it is; parameters and input included.
        phase, module: what ran then.
        workspace_bytes: the part of the peak that is above the ledger's; 0 where shapes alone are
            looked at.
    """

    chosen: BlockSet
    peak_bytes: int
    held_bytes: int
    stages: Sequence[Stage]
    held_of: Mapping[int, int] = field(default_factory=dict)
    bytes_by_why: Mapping[str, int] = field(default_factory=dict)
    phase: str = ""
    module: str = ""
    workspace_bytes: int = 0

    @property
    def ledger_bytes(self) -> int:
        """The ledger's peak, which counts tensors."""
        return self.peak_bytes - self.workspace_bytes


class Prediction:
    """The peaks of all sets, from the passes without and with every checkpoint.

    `freed_bytes` and `costs` have an entry for each block of `blocks`. What all free together
    beyond the sum is what each keeps alone and all keep once: an argument that all are given.
    """

    def __init__(
        self,
        none: SetPass,
        all_of_them: SetPass,
        freed_bytes: Mapping[int, int],
        costs: Mapping[int, Number],
    ) -> None:
        self.blocks = sorted(freed_bytes)
        together = none.held_bytes - all_of_them.held_bytes - sum(freed_bytes.values())
        self._shared = together // max(1, len(self.blocks) - 1)
        self._freed = {block: freed + self._shared for block, freed in freed_bytes.items()}
        self._costs = costs
        self._stages = none.stages
        self._extra = self._extras(all_of_them)

    def _extras(self, all_of_them: SetPass) -> dict[tuple[str, int], int]:
        """What a checkpoint adds in stages of its own block: the others' freed bytes are known."""
        lowest: dict[tuple[str, int], int] = {}
        for stage in self._stages:
            if stage.block in self._freed and stage.block is not None:
                left = self._left(stage, self._freed)
                key = (stage.phase, stage.block)
                lowest[key] = max(left, lowest.get(key, left))
        found: dict[tuple[str, int], int] = {}
        for stage in all_of_them.stages:
            key = (stage.phase, -1 if stage.block is None else stage.block)
            if key in lowest:
                extra = stage.peak_bytes - lowest[key]
                found[key] = max(extra, found.get(key, extra))
        return found

    def _left(self, stage: Stage, chosen: Collection[int]) -> int:
        """The level of a stage without what is freed by then."""
        freed = sum(self._freed[b] for b in stage.held if b in chosen and b != stage.block)
        return stage.peak_bytes - freed + (self._shared if chosen else 0)

    def _at(self, stage: Stage, chosen: Collection[int]) -> int:
        again = 0
        if stage.block is not None and stage.block in chosen:
            again = self._extra.get((stage.phase, stage.block), 0)
        return self._left(stage, chosen) + again

    def peak_bytes(self, chosen: BlockSet) -> int:
        """What the peak of a set should be."""
        return max(self._at(stage, chosen) for stage in self._stages)

    def cost(self, chosen: Collection[int]) -> Number:
        """What computing these blocks again costs."""
        return sum(self._costs[block] for block in chosen)

    def cheapest(self, budget_bytes: int) -> BlockSet | None:
        """A set within the budget that costs least, then with the fewest blocks, then with the
        lowest peak; None for none.
        """
        if len(self.blocks) <= ALL_SETS_OF:
            return next((s for peak, s in self._by_cost if peak <= budget_bytes), None)
        thinned = [self._thinned(order, budget_bytes) for order in self._orders]
        found = [chosen for chosen in thinned if chosen is not None]
        return min(found, key=self._rank, default=None)

    def lowest(self) -> BlockSet:
        """The cheapest set of those with the lowest peak."""
        if len(self.blocks) <= ALL_SETS_OF:
            return min(self._by_cost, key=lambda found: found[0])[1]
        chosen = frozenset(self.blocks)
        while True:
            better = min(
                (chosen - {b} for b in sorted(chosen)), key=self.peak_bytes, default=chosen
            )
            if self.peak_bytes(better) >= self.peak_bytes(chosen):
                return self.cheapest(self.peak_bytes(chosen)) or chosen
            chosen = better

    def _rank(self, chosen: BlockSet) -> tuple[Number, int, int, Sequence[int]]:
        return self.cost(chosen), len(chosen), self.peak_bytes(chosen), sorted(chosen)

    @cached_property
    def _by_cost(self) -> list[tuple[int, BlockSet]]:
        """Every set with its peak, cheap ones first."""
        sets = map(frozenset, _subsets(self.blocks))
        return [(self.peak_bytes(chosen), chosen) for chosen in sorted(sets, key=self._rank)]

    @cached_property
    def _orders(self) -> list[list[int]]:
        """In which blocks are left out: dear ones for what they free first, late ones first."""
        late = self.blocks[::-1]  # what a late block frees lowers the fewest stages
        return [
            late,
            sorted(late, key=lambda b: -self._costs[b]),
            sorted(late, key=lambda b: self._freed[b]),
            sorted(late, key=lambda b: -self._costs[b] / max(1, self._freed[b])),
        ]

    def _thinned(self, order: Sequence[int], budget_bytes: int) -> BlockSet | None:
        """All blocks without those that can be left out one after the other."""
        chosen = set(self.blocks)
        levels = [self._at(stage, chosen) for stage in self._stages]
        for block in [*order, *order]:  # leaving out one may make room for another
            without = [self._without(block, i, levels[i], chosen) for i in range(len(levels))]
            fits = max(without) <= budget_bytes
            if block in chosen and (fits or max(without) < max(levels) > budget_bytes):
                chosen.discard(block)
                levels = without
        return frozenset(chosen) if max(levels) <= budget_bytes else None

    def _without(self, block: int, i: int, level: int, chosen: Collection[int]) -> int:
        """The level of stage i where `block` is not under a checkpoint."""
        stage = self._stages[i]
        if stage.block == block:
            return level - self._extra.get((stage.phase, block), 0)
        return level + (self._freed[block] if block in stage.held and block in chosen else 0)


def _subsets(blocks: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(blocks) + 1):
        yield from combinations(blocks, size)
