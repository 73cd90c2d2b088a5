"""`ckpt plan --graph FILE`: a problem of any kind, planned without a program."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from ckptcli.cli.plan_files import file_of
from ckptcli.cli.plan_limits import budget_of, optimizer_notes
from ckptcli.cli.streams import warn
from ckptcli.cli.subjects.base import PlanAnswer
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.plan import PlanOptions, ProblemOptions
    from ckptcli.planning.plan import Plan
    from ckptcli.planning.problems.base import Problem
    from ckptcli.report.screen import Screen

LINES_A_WRITE = 10_000
OF_STEPS = ("slots", "disk", "write_cost", "read_cost")
OF_PROGRAMS = ("host_memory_text", "transfer_text")


def planned_problem(path: str, options: PlanOptions, line: Line) -> PlanAnswer:
    """The plan for what is in the file.

    Raises:
        UsageError: options that are not for such a problem.
        ProblemFileError: the file has none.
    """
    from ckptcli.planning.making import make_plan
    from ckptcli.planning.planners.base import Deadline, Request
    from ckptcli.planning.problems.program import ProgramProblem
    from ckptcli.planning.problems.reading import read_problem_file

    problem, warnings = read_problem_file(path)
    if isinstance(problem, ProgramProblem):
        from ckptcli.cli.program_plans import planned_graph

        warn(warnings, options.notes.quiet)
        return planned_graph(problem, options, line)
    if "device_memory" in line.given:
        raise UsageError(
            f"--device-memory is for a program or a module, and {path} has a problem of the kind "
            f"{problem.kind}",
            "give --budget in the file's unit",
        )
    budget = _budget(problem, options.problem)
    problem = _with_disk(problem, options.problem)
    with file_of(options.actions.actions_path, options) as file:
        request = Request(budget, Deadline(options.planner.time_limit_s))
        plan = make_plan(problem, request, options.planner.planner_name)
        if file is not None and plan.actions is not None:
            file.write_parts(_lines(plan))
    lost = [*_without_effect(problem, line.given), *optimizer_notes(options)]
    return PlannedProblem(plan, [*warnings, *lost])


@dataclass(frozen=True)
class PlannedProblem(PlanAnswer):
    """The plan for a problem in a file; see `PlanAnswer`."""

    plan: Plan
    notes: Sequence[str]

    @property
    def feasible(self) -> bool:
        return self.plan.feasible

    def data(self) -> str:
        from ckptcli.planning.plan_json import plan_text

        return plan_text(self.plan)

    def render(self, screen: Screen) -> str:
        from ckptcli.report.plan_console import render_plan

        return render_plan(self.plan, screen)


def _budget(problem: Problem, options: ProblemOptions) -> int | None:
    """The budget in the problem's unit; None for anything.

    Raises:
        UsageError: it is no size, or what counts in slots has none.
    """
    if problem.kind == "steps":
        if options.slots is None:
            raise UsageError("steps are planned for a number of slots", "give --slots S")
        return options.slots
    return budget_of(options.budget_text, "give a number in the file's unit, or one such as 64MiB")


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
    for name in (*lost, *OF_PROGRAMS):
        if name in given:
            flag = f"--{name.removesuffix('_text').replace('_', '-')}"
            yield f"{flag} has no effect on a problem of the kind {problem.kind}"


def _lines(plan: Plan) -> Iterator[bytes]:
    """An action a line, some thousand lines at once, made while they are written."""
    from ckptcli.planning.making import written

    actions = written(plan)
    while lines := [json.dumps(action) for action in islice(actions, LINES_A_WRITE)]:
        yield ("\n".join(lines) + "\n").encode()
