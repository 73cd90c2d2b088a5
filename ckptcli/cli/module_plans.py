"""`ckpt plan --module`: which blocks of a PyTorch module to checkpoint, and the code that does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ckptcli.cli.model_plans import PlannedModel
from ckptcli.cli.plan_limits import budget_of, check_asked, device_bytes, run_notes
from ckptcli.cli.subjects.base import Tell
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.peers.base import Engine
    from ckptcli.peers.module_request import ModuleRequest
    from ckptcli.profiling.module_plan import PlanRequest


def planned_module(
    module: ModuleRequest, options: PlanOptions, engine: Engine, tell: Tell
) -> PlannedModel:
    """The plan for a module.

    Raises:
        UsageError: nothing is asked for, or options do not go together.
        ProgramError: the module fails.
    """
    from ckptcli.profiling.module_plan import measured_plan, plan_module
    from ckptcli.report.module_plan import render_module_plan

    request = _request(module, options)
    plan, doubts = plan_module(request, tell)
    if options.recorded.run:
        plan = measured_plan(request, plan, engine, tell)
    return PlannedModel(plan, [*run_notes(options), *doubts], render_module_plan)


def _request(module: ModuleRequest, options: PlanOptions) -> PlanRequest:
    from ckptcli.profiling.module_plan import PlanRequest

    asked = options.recorded
    check_asked(options, f"--module {module.text}")
    budget, memory_bytes = budget_of(options.problem.budget_text), device_bytes(options)
    if asked.run and options.shapes.is_fake:
        raise UsageError("--run needs values, and --fake has none", "leave out one of them")
    optimizer = options.optimizer.optimizer or ""
    module = replace(module, accumulate=options.training.accumulate, optimizer=optimizer)
    is_fake, seed = options.shapes.is_fake, options.workload.seed
    return PlanRequest(module, budget, asked.cost_name or "flops", is_fake, seed, memory_bytes)
