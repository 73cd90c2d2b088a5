"""`ckpt plan --module`: which blocks of a PyTorch module to checkpoint, and the code that does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ckptcli.cli.plan_limits import budget_bytes, device_bytes, has_limit
from ckptcli.cli.program_plans import plan_files
from ckptcli.cli.streams import Progress, warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import DONE, FAILED, WRONG

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.planning.blocks.plan import ModulePlan
    from ckptcli.profiling.module_plan import PlanRequest


def plan_module(options: PlanOptions, line: Line) -> int:
    """Plan for the module of `--module`; returns the exit code.

    Raises:
        UsageError: nothing is asked for, or options do not go together.
        ProgramError: the module fails.
    """
    from ckptcli.cli.devices import limited_threads
    from ckptcli.cli.engines import opened_engines
    from ckptcli.cli.subjects.module import ENGINE, KIND
    from ckptcli.options.effects import without_effect

    request = _request(options)
    threads, quiet = options.device.threads, options.notes.quiet
    lost = without_effect(line.options, line.given, KIND)
    progress = Progress(quiet)
    with (
        limited_threads(options.device, quiet),
        plan_files(options) as files,
        opened_engines([ENGINE], threads) as (engines, notes),
    ):
        from ckptcli.profiling.module_plan import measured_plan, plan_module

        try:
            plan, doubts = plan_module(request, progress.tell)
            if options.recorded.run:
                plan = measured_plan(request, plan, engines[0], progress.tell)
        finally:
            progress.end()
        warn([*lost, *notes, *doubts], quiet)
        for file in files:
            file.write(json.dumps(plan.to_json(), indent=2) + "\n")
        _print(plan, options)
    return _exit_code(plan)


def _request(options: PlanOptions) -> PlanRequest:
    from ckptcli.cli.subjects.module import ModuleSubject, module_request
    from ckptcli.profiling.module_plan import PlanRequest

    asked, text = options.recorded, ModuleSubject.named_by(options)
    if options.problem.graph_path is not None:
        raise UsageError(f"{text} and --graph are two problems", "leave out one")
    if not has_limit(options) and not asked.pareto:
        raise UsageError(
            f"there is nothing to plan for {text}",
            "give --budget SIZE, --device-memory SIZE or --pareto",
        )
    budget, memory_bytes = budget_bytes(options), device_bytes(options)
    if asked.run and options.shapes.is_fake:
        raise UsageError("--run needs values, and --fake has none", "leave out one of them")
    module = replace(module_request(options), accumulate=options.training.accumulate)
    is_fake, seed = options.shapes.is_fake, options.workload.seed
    return PlanRequest(module, budget, asked.cost_name, is_fake, seed, memory_bytes)


def _print(plan: ModulePlan, options: PlanOptions) -> None:
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json

        print_json(plan.to_json())
        return
    from ckptcli.cli.screens import open_screen
    from ckptcli.report.module_plan import render_module_plan

    click.echo(render_module_plan(plan, open_screen(options.screen)), nl=False, color=True)


def _exit_code(plan: ModulePlan) -> int:
    measured = plan.measured
    if measured is not None and not (measured.within_budget and measured.gradients_equal):
        return WRONG
    return DONE if plan.feasible else FAILED
