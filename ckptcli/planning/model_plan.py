"""A plan for a model of the user's own, as data: what every kind of model has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ckptcli.planning.device_limit import DeviceLimit
from ckptcli.planning.plan import SCHEMA
from ckptcli.planning.problems.base import Number
from ckptcli.planning.snippet import Snippet


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan(ABC):
    """What `ckpt plan` answers for a model. Peaks are above `base_bytes`.

    Attributes:
        kind: of model, which is also what runs the plan.
        planner: who looked for it.
        title: of the model.
        budget: in bytes; None where none is set.
        base_bytes: what is there before a pass.
        cost_unit: what costs count: flops, time or count.
        whole_cost: of the forward pass without checkpoints.
        snippets: code for the answer.
        limit: the device whose memory leaves the budget; None where a budget was given.
    """

    kind: ClassVar[str]
    planner: ClassVar[str]

    title: str
    budget: int | None
    base_bytes: int
    cost_unit: str
    whole_cost: Number
    snippets: Sequence[Snippet] = ()
    limit: DeviceLimit | None = None

    @property
    def changes_gradients(self) -> bool:
        """Whether the answer is known to give other gradients than no checkpoint does."""
        return False

    @property
    @abstractmethod
    def peak_bytes(self) -> int | None:
        """Of the answer; None where nothing is within the budget, or none is asked for."""

    @property
    @abstractmethod
    def least_bytes(self) -> int:
        """The least peak that was found."""

    @property
    @abstractmethod
    def strategy(self) -> str | None:
        """What `-s` takes for the answer."""

    @property
    @abstractmethod
    def recomputed(self) -> Number | None:
        """What the answer computes once more, in `cost_unit`."""

    @property
    def feasible(self) -> bool:
        """Whether checkpoints within the budget were found; without one, always."""
        return self.budget is None or self.peak_bytes is not None

    def answer_object(self) -> dict[str, Any]:
        """What the object `ckpt.plan/1` has of every model."""
        again = self.recomputed
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "title": self.title,
            "feasible": self.feasible,
            "planner": self.planner,
            "runs": self.kind,
            "budget": self.budget,
            "cost": None if again is None else self.whole_cost + again,
            "recomputed": again,
            "peak": self.peak_bytes,
            "min_budget": self.least_bytes,
            "min_budget_proved": False,
            "proved_optimal": False,
            "cost_unit": self.cost_unit,
            "device_memory": None if self.limit is None else self.limit.to_json(),
            "strategy": self.strategy,
            "code": [asdict(snippet) for snippet in self.snippets],
        }
