"""The answer of a `ckpt plan` for a model of the user's own, whatever library it is written for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ckptcli.cli.subjects.base import PlanAnswer

if TYPE_CHECKING:
    from ckptcli.planning.blocks.plan import ModulePlan
    from ckptcli.planning.functions.plan import FunctionPlan
    from ckptcli.report.screen import Screen


@dataclass(frozen=True)
class PlannedModel(PlanAnswer):
    """A plan for checkpoints; see `PlanAnswer`.

    Attributes:
        render_plan: makes a screen of the plan.
    """

    plan: ModulePlan | FunctionPlan
    notes: Sequence[str]
    render_plan: Callable[[Any, Screen], str]

    @property
    def feasible(self) -> bool:
        return self.plan.feasible

    @property
    def is_wrong(self) -> bool:
        measured = self.plan.measured
        if measured is not None:
            return not (measured.within_budget and measured.gradients_equal)
        return self.plan.changes_gradients

    def data(self) -> str:
        from ckptcli.cli.json_output import json_text

        return json_text(self.plan.to_json())

    def render(self, screen: Screen) -> str:
        return self.render_plan(self.plan, screen)
