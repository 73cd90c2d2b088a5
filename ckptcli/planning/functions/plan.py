"""A plan for a compiled function, as data: the candidates that were compiled, the answer, code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ckptcli.planning.device_limit import DeviceLimit
from ckptcli.planning.functions.search import Found, Point
from ckptcli.planning.plan import SCHEMA
from ckptcli.planning.problems.base import Number
from ckptcli.planning.snippet import Snippet

OWN = "own"


@dataclass(frozen=True, slots=True)
class MeasuredFunction:
    """A plan that was run.

    Attributes:
        peak_bytes: above the arguments, by the compiler's plan of the program that ran.
        process_bytes: how far the memory of a fresh process rose; None where it cannot be had.
        time_s, none_time_s: medians of forward and backward, interleaved.
        within_budget: whether the peak is within the budget; true without one.
        gradients_equal: whether gradients are those of `none` but for rounding.
        gradient_relative: how far they are off, as a share of the largest element.
    """

    peak_bytes: int
    process_bytes: int | None
    time_s: float
    none_time_s: float | None
    within_budget: bool
    gradients_equal: bool
    gradient_relative: float


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """What `ckpt plan --function` answers. Peaks are above `base_bytes`, and the compiler's.

    Attributes:
        title: of the function.
        budget: in bytes; None where none is set.
        base_bytes: the arguments: parameters and batch.
        cost_unit: what costs count: flops, time or count.
        whole_cost: of the forward pass without checkpoints.
        found: what was traced and compiled.
        best: the cheapest within the budget; None where none is, or none is asked for.
        names: what values of the function are called.
        snippets: code for `best`.
        measured: what `best` took when it was run.
        limit: the device whose memory leaves the budget; None where a budget was given.
    """

    title: str
    budget: int | None
    base_bytes: int
    cost_unit: str
    whole_cost: Number
    found: Found
    best: Point | None
    names: Sequence[str]
    snippets: Sequence[Snippet] = ()
    measured: MeasuredFunction | None = None
    limit: DeviceLimit | None = None

    @property
    def feasible(self) -> bool:
        """Whether a checkpoint within the budget was found; without one, always."""
        return self.budget is None or self.best is not None

    @property
    def has_checkpoints(self) -> bool:
        """Whether the answer has any."""
        return self.best is not None and self.best != self.found.none

    @property
    def is_own(self) -> bool:
        """Whether the answer is the function as it is."""
        return self.best is not None and self.best.candidate.strategy == OWN

    def to_json(self) -> dict[str, Any]:
        """The object `ckpt.plan/1`."""
        best, lowest = self.best, self.found.lowest
        return {
            "schema": SCHEMA,
            "kind": "function",
            "title": self.title,
            "feasible": self.feasible,
            "planner": "policies",
            "runs": "function",
            "budget": self.budget,
            "cost": None if best is None else self.whole_cost + best.cost,
            "recomputed": None if best is None else best.cost,
            "peak": None if best is None else best.peak_bytes,
            "min_budget": lowest.peak_bytes,
            "min_budget_proved": False,
            "proved_optimal": False,
            "cost_unit": self.cost_unit,
            "covers": {"above_bytes": self.base_bytes, "gradients": "kept", "workspace": False},
            "device_memory": None if self.limit is None else self.limit.to_json(),
            "strategy": None if best is None else best.candidate.strategy,
            "actions": [_action(best)] if best is not None and self.has_checkpoints else [],
            "set_by": {"least": lowest.peak_bytes, "strategy": lowest.candidate.strategy},
            "names": list(self.names),
            "points": [_point(point) for point in self.found.points],
            "frontier": [_point(point) for point in self.found.frontier()],
            "traced": self.found.traced,
            "compiled": len(self.found.points),
            "passed_over": self.found.passed_over,
            "refused": self.found.refused,
            "code": [asdict(snippet) for snippet in self.snippets],
            "measured": None if self.measured is None else asdict(self.measured),
        }


def _action(best: Point) -> dict[str, str]:
    return {"checkpoint": best.candidate.place or "loss", "saved": best.candidate.saved}


def _point(of: Point) -> dict[str, Any]:
    return {
        "strategy": of.candidate.strategy,
        "peak": of.peak_bytes,
        "held": of.held_bytes,
        "recomputed": of.cost,
    }
