"""A plan for a compiled function, as data: the candidates that were compiled, the answer, code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ckptcli.planning.functions.search import Found, Point
from ckptcli.planning.model_plan import ModelPlan
from ckptcli.planning.problems.base import Number

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPlan(ModelPlan):
    """What `ckpt plan --function` answers: peaks are the compiler's, above the arguments, which are
    parameters and batch; see `ModelPlan`.

    Attributes:
        found: what was traced and compiled.
        best: the cheapest within the budget; None where none is, or none is asked for.
        names: what values of the function are called.
        measured: what `best` took when it was run.
    """

    kind: ClassVar[str] = "function"
    planner: ClassVar[str] = "policies"

    found: Found
    best: Point | None
    names: Sequence[str]
    measured: MeasuredFunction | None = None

    @property
    def peak_bytes(self) -> int | None:
        return None if self.best is None else self.best.peak_bytes

    @property
    def least_bytes(self) -> int:
        return self.found.lowest.peak_bytes

    @property
    def strategy(self) -> str | None:
        return None if self.best is None else self.best.candidate.strategy

    @property
    def recomputed(self) -> Number | None:
        return None if self.best is None else self.best.cost

    @property
    def has_checkpoints(self) -> bool:
        """Whether the answer has any."""
        return self.best is not None and self.best != self.found.none

    @property
    def is_own(self) -> bool:
        """Whether the answer is the function as it is."""
        return self.strategy == OWN

    def to_json(self) -> dict[str, Any]:
        """The object `ckpt.plan/1`."""
        best, lowest = self.best, self.found.lowest
        return {
            **self.answer_object(),
            "covers": {"above_bytes": self.base_bytes, "gradients": "kept", "workspace": False},
            "actions": [_action(best)] if best is not None and self.has_checkpoints else [],
            "set_by": {"least": lowest.peak_bytes, "strategy": lowest.candidate.strategy},
            "names": list(self.names),
            "points": [_point(point) for point in self.found.points],
            "frontier": [_point(point) for point in self.found.frontier()],
            "traced": self.found.traced,
            "compiled": len(self.found.points),
            "passed_over": self.found.passed_over,
            "refused": self.found.refused,
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
