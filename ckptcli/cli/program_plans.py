"""`ckpt plan` of a program: recorded, planned for, run if that is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.plan_limits import budget_bytes, has_limit, program_limit
from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import DONE, FAILED, WRONG

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.planning.planners.base import Deadline
    from ckptcli.planning.problems.program import ProgramProblem
    from ckptcli.planning.tape.choice import Choice, Named
    from ckptcli.planning.tape.frontier import Point
    from ckptcli.planning.tape.measured import Measured
    from ckptcli.report.output import OutputFile
    from ckptcli.workloads.base import Workload

SUFFIX = ".json"


def plan_workload(options: PlanOptions, line: Line) -> int:
    """Plan for the program of `--workload`, recorded on the backend of the options.

    Raises:
        UsageError: nothing is asked for, or the options stand for several programs.
    """
    asked = options.recorded
    if not has_limit(options) and not asked.pareto and asked.graph_export is None:
        raise UsageError(
            "there is nothing to plan",
            "give --budget SIZE, --device-memory SIZE or --pareto for the program of --workload, "
            "or --graph FILE",
        )
    from ckptcli.cli.devices import limited_threads, open_device
    from ckptcli.cli.programs import open_programs, program_notes

    quiet = options.notes.quiet
    with limited_threads(options.device, quiet):
        workloads = open_programs(options.program, options.workload, options.memory)
        warn([*program_notes(line, workloads), *_not_taken(options, line)], quiet)
        if len(workloads) > 1:
            raise UsageError(
                f"the options stand for {len(workloads)} programs, and a plan is for one",
                "give one value of each option, or name one case of a file",
            )
        backend = open_device(options.device, options.workload.dtype, quiet)
        with plan_files(options) as plans, _file(asked.graph_export, options) as graph:
            problem, named = _recorded(workloads[0], backend, options, graph)
            return _Answer(options, line, plans).give(problem, named, (workloads[0], backend))


def _not_taken(options: PlanOptions, line: Line) -> list[str]:
    """A warning for each option that the workload does not look at."""
    from ckptcli.cli.programs import kind_of_workload
    from ckptcli.options.effects import without_effect

    subject = kind_of_workload(options.program.workload_text)
    return without_effect(line.options, line.given, subject)


def plan_graph(problem: ProgramProblem, options: PlanOptions, line: Line) -> int:
    """Plan for a recorded program: no array of it is made.

    Raises:
        UsageError: it is to be run.
    """
    from ckptcli.planning.problems.program import COSTS
    from ckptcli.simulation.simulator import Simulator

    asked = options.recorded
    if asked.run:
        raise UsageError(
            "--run needs the program, and --graph has what it costs", "use --workload instead"
        )
    if "consume_grads" in line.given:
        warn(["--consume-grads has no effect on --graph: it was recorded so, or not"], False)
    problem = replace(problem, cost_of=COSTS[asked.cost_name])
    with plan_files(options) as plans:
        named = Simulator(problem.graph).named()
        return _Answer(options, line, plans).give(problem, named, None)


def _recorded(
    workload: Workload, backend: Backend, options: PlanOptions, file: OutputFile | None
) -> tuple[ProgramProblem, Sequence[Named]]:
    """The program as a problem, and what named strategies take."""
    from ckptcli.planning.problems.program import COSTS, ProgramProblem
    from ckptcli.simulation.graph_file import written
    from ckptcli.simulation.recorder import record
    from ckptcli.simulation.simulator import Simulator
    from ckptcli.simulation.timing import timed

    asked = options.recorded
    graph = record(workload, backend, options.gradients.consume_grads)
    if asked.cost_name == "time" or file is not None:
        graph = timed(graph, workload, backend)
    if file is not None:
        file.write(json.dumps(written(graph)) + "\n")
    return ProgramProblem(graph, COSTS[asked.cost_name]), Simulator(graph).named()


def _file(path: str | None, options: PlanOptions) -> AbstractContextManager[OutputFile | None]:
    """A file that is written, opened before anything is planned."""
    if path is None:
        return nullcontext()
    from ckptcli.report.output import OutputFile

    return OutputFile.open(Path(path), options.actions.force)


@contextmanager
def plan_files(options: PlanOptions) -> Iterator[list[OutputFile]]:
    """The files of --export, opened before anything is planned.

    Raises:
        UsageError: one whose suffix says another format.
    """
    with ExitStack() as stack:
        files: list[OutputFile] = []
        for path in options.recorded.plan_exports:
            if not path.endswith(SUFFIX):
                raise UsageError(f"--export {path}: a plan is written as JSON", f"use a {SUFFIX}")
            file = stack.enter_context(_file(path, options))
            files += [file] if file is not None else []
        yield files


class _Answer:
    """Plans, runs and prints as the options say."""

    def __init__(self, options: PlanOptions, line: Line, files: Sequence[OutputFile]) -> None:
        self.options = options
        self.line = line
        self.files = files

    def give(
        self,
        problem: ProgramProblem,
        named: Sequence[Named],
        program: tuple[Workload, Backend] | None,
    ) -> int:
        """Returns the exit code."""
        from ckptcli.planning.tape.choice import choose
        from ckptcli.planning.tape.frontier import frontier

        options = self.options
        limit, deadline = program_limit(options, problem.graph), self._deadline()
        budget = budget_bytes(options) if limit is None else limit.budget_bytes
        choice = choose(problem, budget, named, options.planner.planner_name, deadline)
        choice = replace(choice, limit=limit)
        points = None
        if options.recorded.pareto:
            points = frontier(problem, named, lambda: deadline.passed)
        measured = None
        if options.recorded.run and program is not None and choice.tape is not None:
            measured = self._measure(choice, *program)
        for file in self.files:
            file.write(json.dumps(self._object(choice, measured, None, True)) + "\n")
        self._print(choice, measured, points)
        if measured is not None and (
            not measured.within_budget or measured.gradients_equal is False
        ):
            return WRONG
        return DONE if choice.plan.feasible else FAILED

    def _deadline(self) -> Deadline:
        """Only where it was asked for: without it the same budget gives the same plan."""
        from ckptcli.planning.planners.base import Deadline

        return Deadline(self.options.planner.time_limit_s)

    def _measure(self, choice: Choice, workload: Workload, backend: Backend) -> Measured:
        from ckptcli.checkpoint.planned import strategy_of
        from ckptcli.errors import CkptError
        from ckptcli.profiling.memory_needed import check_fits
        from ckptcli.profiling.planned_pass import measure_plan

        assert choice.tape is not None
        try:
            check_fits(workload, [*_none()], backend)
            beside_none = True
        except CkptError:
            beside_none = False
        return measure_plan(
            workload,
            strategy_of(choice.tape, "plan"),
            backend,
            choice.plan.budget,
            choice.problem.graph.consumes,
            beside_none,
        )

    def _object(
        self,
        choice: Choice,
        measured: Measured | None,
        points: Sequence[Point] | None,
        for_a_file: bool = False,
    ) -> dict[str, Any]:
        from ckptcli.planning.tape.choice_json import choice_object

        found = choice_object(choice, self.options.recorded.cost_name, measured, points)
        if choice.tape is None:
            return found
        plan = choice.tape.to_json()
        return {**found, **plan} if for_a_file else {**found, "actions": plan["actions"]}

    def _print(
        self, choice: Choice, measured: Measured | None, points: Sequence[Point] | None
    ) -> None:
        if self.options.data.as_json:
            from ckptcli.cli.json_output import print_json

            print_json(self._object(choice, measured, points))
            return
        from ckptcli.cli.screens import open_screen
        from ckptcli.report.program_plan import render_choice

        screen = open_screen(self.options.screen)
        cost = self.options.recorded.cost_name
        click.echo(render_choice(choice, cost, measured, points, screen), nl=False, color=True)


def _none() -> list[Any]:
    from ckptcli.checkpoint.strategies.none import NoCheckpointing

    return [NoCheckpointing()]
