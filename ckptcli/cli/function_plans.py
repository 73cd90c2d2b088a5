"""`ckpt plan --function`: which checkpoint of a JAX function, what it may save, and the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcli.cli.model_plans import PlannedModel
from ckptcli.cli.plan_limits import (
    budget_of,
    check_asked,
    device_bytes,
    optimizer_notes,
    run_notes,
)
from ckptcli.cli.subjects.base import Tell

if TYPE_CHECKING:
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.peers.base import Engine


def planned_function(text: str, options: PlanOptions, engine: Engine, tell: Tell) -> PlannedModel:
    """The plan for a function.

    Raises:
        UsageError: nothing is asked for, or options do not go together.
        ProgramError: the function fails.
    """
    from ckptcli.profiling.function_plan import FunctionPlanRequest, measured_plan, plan_function
    from ckptcli.report.function_plan import render_function_plan

    check_asked(options, f"--function {text}")
    request = FunctionPlanRequest(
        text,
        budget_of(options.problem.budget_text),
        options.recorded.cost_name or "flops",
        options.blocks.blocks_text,
        device_bytes(options),
        options.optimizer.optimizer or "",
    )
    plan, doubts = plan_function(request, tell)
    if options.recorded.run:
        plan = measured_plan(request, plan, engine, tell)
    notes = [*optimizer_notes(options), *run_notes(options), *doubts]
    return PlannedModel(plan, notes, render_function_plan)
