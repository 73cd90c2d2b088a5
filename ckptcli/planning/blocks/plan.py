"""A plan for a network of blocks, as data: the blocks, the sets that were measured, the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ckptcli.planning.blocks.sets import ALL_SETS_OF, SetPass
from ckptcli.planning.device_limit import DeviceLimit
from ckptcli.planning.plan import SCHEMA
from ckptcli.planning.problems.base import Number
from ckptcli.planning.snippet import Snippet
from ckptcli.planning.tape.measured import Measured

THINNED = (
    f"of more than {ALL_SETS_OF} blocks not every set is predicted: blocks are left out of the "
    "whole one after the other, and another set may cost less"
)


@dataclass(frozen=True, slots=True)
class Block:
    """What goes under one checkpoint by itself.

    Attributes:
        paths: of its parts.
        flops: of its forward, by PyTorch's counter.
        time_s: of its forward; None where nothing is computed.
        holds_bytes: what is saved of it from forward to backward without a checkpoint.
        frees_bytes: how much less is held where it alone is under one; None where it cannot be.
        peak_bytes: the peak of that, above what is there before; None likewise.
        refused: why it cannot be; "" where it can.
    """

    paths: Sequence[str]
    flops: int
    time_s: float | None
    holds_bytes: int
    frees_bytes: int | None
    peak_bytes: int | None
    refused: str = ""

    @property
    def name(self) -> str:
        """The first of its parts, and how many more there are."""
        more = len(self.paths) - 1
        return self.paths[0] + (f" and {more} more" if more else "")


@dataclass(frozen=True, slots=True)
class ModulePlan:
    """What `ckpt plan --module` answers. Peaks are above `base_bytes`, with what kernels take.

    Attributes:
        title: of the module.
        budget: in bytes; None where none is set.
        base_bytes: parameters, buffers, input and the optimizer's state.
        cost_unit: what costs count: flops, time or count.
        whole_cost: of the whole forward; of `count`, the number of blocks.
        costs: of each block.
        none: the pass without checkpoints.
        best: the cheapest measured set within the budget; None where none is, or none is asked for.
        lowest: the measured set with the least peak.
        frontier: measured sets that no other one beats, cheap ones first.
        strategies: what `-s` takes, for each set of `frontier`, `best` and `lowest`.
        passes: how many sets were measured.
        thinned: whether sets were thinned out of the whole, so that not all were looked at.
        predicted, as_predicted: of how many the peak was told before, and of how many rightly.
        snippets: code for `best`.
        is_fake: whether shapes alone were looked at.
        measured: what `best` took when it was run.
        limit: the device whose memory leaves the budget; None where a budget was given.
    """

    title: str
    budget: int | None
    base_bytes: int
    cost_unit: str
    whole_cost: Number
    costs: Sequence[Number]
    blocks: Sequence[Block]
    none: SetPass
    best: SetPass | None
    lowest: SetPass
    frontier: Sequence[SetPass]
    strategies: Mapping[frozenset[int], str]
    passes: int
    thinned: bool
    predicted: int
    as_predicted: int
    snippets: Sequence[Snippet]
    is_fake: bool
    measured: Measured | None = None
    limit: DeviceLimit | None = None

    @property
    def feasible(self) -> bool:
        """Whether a set within the budget was found; without one, always."""
        return self.budget is None or self.best is not None

    @property
    def strategy(self) -> str | None:
        """What `-s` takes for the answer."""
        return None if self.best is None else self.strategies[self.best.chosen]

    @property
    def names_chosen(self) -> Sequence[str]:
        """The parts under the checkpoints of the answer, by path."""
        return () if self.best is None else self.names(self.best)

    @property
    def code(self) -> str | None:
        """The first way to make its checkpoints, as code of a `model`."""
        return self.snippets[0].code if self.snippets else None

    def cost(self, of: SetPass) -> Number:
        """What the blocks of a set cost once more."""
        return sum(self.costs[block] for block in of.chosen)

    def names(self, of: SetPass) -> list[str]:
        """The parts of its blocks, by path."""
        return [path for block in sorted(of.chosen) for path in self.blocks[block].paths]

    def to_json(self) -> dict[str, Any]:
        """The object `ckpt.plan/1`."""
        best = self.best
        extra = None if best is None else self.cost(best)
        return {
            "schema": SCHEMA,
            "kind": "module",
            "title": self.title,
            "feasible": self.feasible,
            "planner": "blocks",
            "runs": "module",
            "budget": self.budget,
            "cost": None if extra is None else self.whole_cost + extra,
            "recomputed": extra,
            "peak": None if best is None else best.peak_bytes,
            "ledger_peak": None if best is None else best.ledger_bytes,
            "min_budget": self.lowest.peak_bytes,
            "min_budget_proved": False,
            "proved_optimal": False,
            "limits": [THINNED] if self.thinned else [],
            "cost_unit": self.cost_unit,
            "covers": {
                "above_bytes": self.base_bytes,
                "gradients": "kept",
                "workspace": not self.is_fake,
            },
            "device_memory": None if self.limit is None else self.limit.to_json(),
            "strategy": self.strategy,
            "actions": [{"checkpoint": self.blocks[b].paths} for b in sorted(best.chosen)]
            if best
            else [],
            "set_by": self._floor(),
            "blocks": [asdict(block) for block in self.blocks],
            "frontier": [self._point(point) for point in self.frontier],
            "passes": self.passes,
            "predicted": self.predicted,
            "as_predicted": self.as_predicted,
            "shapes_only": self.is_fake,
            "code": [asdict(snippet) for snippet in self.snippets],
            "measured": None if self.measured is None else asdict(self.measured),
        }

    def _floor(self) -> dict[str, Any]:
        lowest = self.lowest
        return {
            "least": lowest.peak_bytes,
            "ledger_least": lowest.ledger_bytes,
            "strategy": self.strategies[lowest.chosen],
            "phase": lowest.phase,
            "module": lowest.module,
            "bytes_by_why": dict(lowest.bytes_by_why),
        }

    def _point(self, of: SetPass) -> dict[str, Any]:
        return {
            "strategy": self.strategies[of.chosen],
            "peak": of.peak_bytes,
            "ledger_peak": of.ledger_bytes,
            "held": of.held_bytes,
            "recomputed": self.cost(of),
        }
