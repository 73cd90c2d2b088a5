"""`ckpt plan`: what to keep and what to compute again within a budget."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import DONE, FAILED

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.plan import ActionsOptions, PlanOptions, ProblemOptions
    from ckptcli.planning.plan import Plan
    from ckptcli.planning.problems.base import Problem
    from ckptcli.report.output import OutputFile

LINES_A_WRITE = 10_000
OF_STEPS = ("slots", "disk", "write_cost", "read_cost")


@options_command("plan")
def command(options: PlanOptions, line: Line) -> int:
    """Plan what to keep and what to compute again, so that memory stays within a budget.

    Of a program, --workload, the budget is bytes above parameters and input, gradients and the
    workspace of kernels included; of --graph FILE it is in the file's unit. Of --module it is what
    a step of training adds to parameters, input and optimizer, and a plan is a set of blocks.
    --device-memory is the same limit on all, these included.

    Every plan is played against the rules of its problem: cost and peak are what that gives. Exits
    with 1 if no plan within the budget was found, and says which budget is enough.
    """
    from ckptcli.cli.plan_limits import check_limits
    from ckptcli.cli.program_plans import plan_graph, plan_workload
    from ckptcli.cli.subjects.module import ModuleSubject
    from ckptcli.planning.making import make_plan
    from ckptcli.planning.planners.base import Deadline, Request
    from ckptcli.planning.problems.program import ProgramProblem
    from ckptcli.planning.problems.reading import read_problem_file

    check_limits(options, line)
    if ModuleSubject.named_by(options) is not None:
        from ckptcli.cli.module_plans import plan_module

        return plan_module(options, line)
    if options.problem.graph_path is None:
        return plan_workload(options, line)
    problem, warnings = read_problem_file(options.problem.graph_path)
    if isinstance(problem, ProgramProblem):
        warn(warnings, options.notes.quiet)
        return plan_graph(problem, options, line)
    if "device_memory" in line.given:
        raise UsageError(
            f"--device-memory is for a program or a module, and {options.problem.graph_path} has a "
            f"problem of the kind {problem.kind}",
            "give --budget in the file's unit",
        )
    budget = _budget(problem, options.problem)
    problem = _with_disk(problem, options.problem)
    warn([*warnings, *_without_effect(problem, line.given)], options.notes.quiet)
    with _actions_file(options.actions) as file:
        request = Request(budget, Deadline(options.planner.time_limit_s))
        plan = make_plan(problem, request, options.planner.planner_name)
        if file is not None and plan.actions is not None:
            file.write_parts(_lines(plan))
    _print(plan, options)
    return DONE if plan.feasible else FAILED


def _budget(problem: Problem, options: ProblemOptions) -> int | None:
    """The budget in the problem's unit; None for anything.

    Raises:
        UsageError: it is no size, or what counts in slots has none.
    """
    if problem.kind == "steps":
        if options.slots is None:
            raise UsageError("steps are planned for a number of slots", "give --slots S")
        return options.slots
    if options.budget_text is None:
        return None
    from ckptcli.units import parse_whole_bytes

    try:
        budget = parse_whole_bytes(options.budget_text)
    except ValueError:
        raise UsageError(
            f"--budget `{options.budget_text}` is no size",
            "give a number in the file's unit, or one such as 64MiB",
        ) from None
    if budget < 0:
        raise UsageError(f"--budget {options.budget_text} is below 0", "give 0 or more")
    return budget


def _with_disk(problem: Problem, options: ProblemOptions) -> Problem:
    """Steps with the disk that the options give them; anything else as it is."""
    from ckptcli.planning.problems.steps import StepsProblem

    if not isinstance(problem, StepsProblem):
        return problem
    write, read = (
        int(cost) if cost == int(cost) else cost for cost in (options.write_cost, options.read_cost)
    )
    return replace(problem, disk=options.disk, write_cost=write, read_cost=read)


def _without_effect(problem: Problem, given: Collection[str]) -> Iterator[str]:
    """A warning for each option that means nothing for this kind of problem."""
    lost = ("budget_text",) if problem.kind == "steps" else OF_STEPS
    for name in lost:
        if name in given:
            flag = f"--{name.removesuffix('_text').replace('_', '-')}"
            yield f"{flag} has no effect on a problem of the kind {problem.kind}"


def _actions_file(options: ActionsOptions) -> AbstractContextManager[OutputFile | None]:
    """The file of --actions, opened before anything is planned."""
    if options.actions_path is None:
        return nullcontext()
    from ckptcli.report.output import OutputFile

    return OutputFile.open(Path(options.actions_path), options.force)


def _lines(plan: Plan) -> Iterator[bytes]:
    """An action a line, some thousand lines at once, made while they are written."""
    from ckptcli.planning.making import written

    actions = written(plan)
    while lines := [json.dumps(action) for action in islice(actions, LINES_A_WRITE)]:
        yield ("\n".join(lines) + "\n").encode()


def _print(plan: Plan, options: PlanOptions) -> None:
    if options.data.as_json:
        from ckptcli.planning.plan_json import plan_text

        click.echo(plan_text(plan), nl=False)
        return
    from ckptcli.cli.screens import open_screen
    from ckptcli.report.plan_console import render_plan

    click.echo(render_plan(plan, open_screen(options.screen)), nl=False, color=True)
