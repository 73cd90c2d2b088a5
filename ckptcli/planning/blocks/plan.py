"""A plan for a network of blocks, as data: the blocks, the sets that were measured, the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ckptcli.planning.blocks.sets import ALL_SETS_OF, SetPass
from ckptcli.planning.model_plan import ModelPlan
from ckptcli.planning.problems.base import Number
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulePlan(ModelPlan):
    """What `ckpt plan --module` answers: peaks are with what kernels take, above parameters,
    buffers, input and the optimizer's state; see `ModelPlan`.

    Attributes:
        costs: of each block; of `count`, the whole is the number of blocks.
        none: the pass without checkpoints.
        best: the cheapest measured set within the budget; None where none is, or none is asked for.
        lowest: the measured set with the least peak.
        frontier: measured sets that no other one beats, cheap ones first.
        strategies: what `-s` takes, for each set of `frontier`, `best` and `lowest`.
        passes: how many sets were measured.
        thinned: whether sets were thinned out of the whole, so that not all were looked at.
        predicted, as_predicted: of how many the peak was told before, and of how many rightly.
        is_fake: whether shapes alone were looked at.
        measured: what `best` took when it was run.
        keeps_gradients: whether those of `best` are those without checkpoints; None of shapes, and
            where it has none.
    """

    kind: ClassVar[str] = "module"
    planner: ClassVar[str] = "blocks"

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
    is_fake: bool
    measured: Measured | None = None
    keeps_gradients: bool | None = None

    @property
    def changes_gradients(self) -> bool:
        return self.keeps_gradients is False

    @property
    def peak_bytes(self) -> int | None:
        return None if self.best is None else self.best.peak_bytes

    @property
    def least_bytes(self) -> int:
        return self.lowest.peak_bytes

    @property
    def strategy(self) -> str | None:
        return None if self.best is None else self.strategies[self.best.chosen]

    @property
    def recomputed(self) -> Number | None:
        return None if self.best is None else self.cost(self.best)

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
        chosen = [] if self.best is None else sorted(self.best.chosen)
        has_workspace = not self.is_fake
        covers = {"above_bytes": self.base_bytes, "gradients": "kept", "workspace": has_workspace}
        return {
            **self.answer_object(),
            "ledger_peak": None if self.best is None else self.best.ledger_bytes,
            "limits": [THINNED] if self.thinned else [],
            "covers": covers,
            "actions": [{"checkpoint": self.blocks[block].paths} for block in chosen],
            "set_by": self._floor(),
            "blocks": [asdict(block) for block in self.blocks],
            "frontier": [self._point(point) for point in self.frontier],
            "passes": self.passes,
            "predicted": self.predicted,
            "as_predicted": self.as_predicted,
            "shapes_only": self.is_fake,
            "gradients_equal": self.keeps_gradients,
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
