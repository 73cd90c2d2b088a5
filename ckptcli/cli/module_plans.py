"""`ckpt plan --module`: which blocks of a PyTorch module to checkpoint, and the code that does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ckptcli.cli.plan_limits import budget_bytes, check_asked, device_bytes
from ckptcli.cli.subjects.base import Planned, Tell
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.peers.base import Engine
    from ckptcli.peers.module_request import ModuleRequest
    from ckptcli.planning.blocks.plan import ModulePlan
    from ckptcli.profiling.module_plan import PlanRequest
    from ckptcli.report.screen import Screen


def planned_module(
    module: ModuleRequest, options: PlanOptions, engine: Engine, tell: Tell
) -> PlannedModule:
    """The plan for a module.

    Raises:
        UsageError: nothing is asked for, or options do not go together.
        ProgramError: the module fails.
    """
    from ckptcli.profiling.module_plan import measured_plan, plan_module

    request = _request(module, options)
    plan, doubts = plan_module(request, tell)
    if options.recorded.run:
        plan = measured_plan(request, plan, engine, tell)
    return PlannedModule(plan, doubts)


def _request(module: ModuleRequest, options: PlanOptions) -> PlanRequest:
    from ckptcli.profiling.module_plan import PlanRequest

    asked = options.recorded
    check_asked(options, f"--module {module.text}")
    budget, memory_bytes = budget_bytes(options), device_bytes(options)
    if asked.run and options.shapes.is_fake:
        raise UsageError("--run needs values, and --fake has none", "leave out one of them")
    optimizer = options.optimizer.optimizer or ""
    module = replace(module, accumulate=options.training.accumulate, optimizer=optimizer)
    is_fake, seed = options.shapes.is_fake, options.workload.seed
    return PlanRequest(module, budget, asked.cost_name or "flops", is_fake, seed, memory_bytes)


@dataclass(frozen=True)
class PlannedModule(Planned):
    """The plan for a module; see `Planned`."""

    plan: ModulePlan
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
        from ckptcli.report.module_plan import render_module_plan

        return render_module_plan(self.plan, screen)
