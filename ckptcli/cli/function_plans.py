"""`ckpt plan --function`: which checkpoint of a JAX function, what it may save, and the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ckptcli.cli.plan_limits import budget_bytes, check_asked, device_bytes, optimizer_notes
from ckptcli.cli.subjects.base import Planned, Tell

if TYPE_CHECKING:
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.peers.base import Engine
    from ckptcli.planning.functions.plan import FunctionPlan
    from ckptcli.report.screen import Screen


def planned_function(
    text: str, options: PlanOptions, engine: Engine, tell: Tell
) -> PlannedFunction:
    """The plan for a function.

    Raises:
        UsageError: nothing is asked for, or options do not go together.
        ProgramError: the function fails.
    """
    from ckptcli.profiling.function_plan import FunctionPlanRequest, measured_plan, plan_function

    check_asked(options, f"--function {text}")
    request = FunctionPlanRequest(
        text,
        budget_bytes(options),
        options.recorded.cost_name or "flops",
        options.blocks.blocks_text,
        device_bytes(options),
        options.optimizer.optimizer or "",
    )
    plan, doubts = plan_function(request, tell)
    if options.recorded.run:
        plan = measured_plan(request, plan, engine, tell)
    return PlannedFunction(plan, [*optimizer_notes(options), *doubts])


@dataclass(frozen=True)
class PlannedFunction(Planned):
    """The plan for a function; see `Planned`."""

    plan: FunctionPlan
    notes: Sequence[str]

    @property
    def feasible(self) -> bool:
        return self.plan.feasible

    @property
    def is_wrong(self) -> bool:
        measured = self.plan.measured
        return measured is not None and not (measured.within_budget and measured.gradients_equal)

    def data(self) -> str:
        from ckptcli.cli.json_output import json_text

        return json_text(self.plan.to_json())

    def render(self, screen: Screen) -> str:
        from ckptcli.report.function_plan import render_function_plan

        return render_function_plan(self.plan, screen)
