"""`ckpt plan` of a program: recorded, planned for, run if that is asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ckptcli import units
from ckptcli.cli.plan_files import file_of
from ckptcli.cli.plan_limits import (
    budget_of,
    device_bytes,
    has_limit,
    optimizer_notes,
    program_limit,
)
from ckptcli.cli.plan_moves import moving_of
from ckptcli.cli.subjects.base import PlanAnswer
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.peers.base import Engine
    from ckptcli.planning.planners.base import Deadline
    from ckptcli.planning.problems.program import ProgramProblem
    from ckptcli.planning.tape.choice import Choice, Named
    from ckptcli.planning.tape.cost_graph import CostGraph
    from ckptcli.planning.tape.frontier import Point
    from ckptcli.planning.tape.held_names import Counterpart
    from ckptcli.planning.tape.measured import Measured
    from ckptcli.report.output import OutputFile
    from ckptcli.report.screen import Screen
    from ckptcli.workloads.base import Workload


def planned_workload(options: PlanOptions, line: Line, engines: Sequence[Engine]) -> PlannedProgram:
    """The plan for the program of `--workload`, recorded on the backend of the options, and what it
    is in an engine that is named.

    Raises:
        UsageError: nothing is asked for, or the options stand for several programs.
    """
    from ckptcli.cli.devices import open_device
    from ckptcli.cli.programs import open_programs, program_notes
    from ckptcli.measure.rounds import collector_off

    asked = options.recorded
    if not has_limit(options) and not asked.pareto and asked.graph_export is None:
        raise UsageError(
            "there is nothing to plan",
            "give --budget SIZE, --device-memory SIZE or --pareto for the program of --workload, "
            "or --graph FILE",
        )
    # What is no limit and what moving costs is refused before anything is recorded.
    budget_of(options.problem.budget_text)
    device_bytes(options)
    moving_of(options, asked.cost_name or ("time" if asked.pareto else "flops"))
    workloads = open_programs(options.program, options.workload, options.memory)
    notes = program_notes(line, workloads)
    if len(workloads) > 1:
        raise UsageError(
            f"the options stand for {len(workloads)} programs, and a plan is for one",
            "give one value of each option, or name one case of a file",
        )
    workload = workloads[0].passing(options.gradients.consume_grads, False)
    backend = open_device(options.device, options.workload.dtype, options.notes.quiet)
    _check_recording(workload, backend, options)
    # A recording is many small objects without cycles: looking through them again and again takes
    # a third of the time of a large one.
    with collector_off():
        with file_of(asked.graph_export, options) as file:
            problem, named = _recorded(workload, backend, options, file)
        answer = _Planning(options).answer(problem, named, (workload, backend))
    for engine in engines:
        from ckptcli.profiling.plan_in_jax import counterpart

        answer = replace(answer, counterpart=counterpart(workload, answer.choice, engine))
    return replace(answer, notes=[*notes, *optimizer_notes(options)])


def _check_recording(workload: Workload, backend: Backend, options: PlanOptions) -> None:
    """Refuse a program whose recording cannot fit, where that is checked.

    Raises:
        OutOfMemoryError: with what it needs and what is available.
    """
    if options.memory.no_memory_check:
        return
    from ckptcli.checkpoint.strategies.registry import parse_strategy
    from ckptcli.profiling.memory_needed import RECORDED_UNDER, check_fits

    check_fits(workload, [parse_strategy(RECORDED_UNDER)], backend)


def planned_graph(problem: ProgramProblem, options: PlanOptions, line: Line) -> PlannedProgram:
    """The plan for a recorded program: no array of it is made.

    Raises:
        UsageError: it is to be run.
    """
    from ckptcli.measure.rounds import collector_off
    from ckptcli.simulation.simulator import Simulator

    asked = options.recorded
    if asked.run:
        raise UsageError(
            "--run needs the program, and --graph has what it costs", "use --workload instead"
        )
    problem = _problem(problem.graph, options)
    with collector_off():
        answer = _Planning(options).answer(problem, Simulator(problem.graph).named(), None)
    lost = "--consume-grads has no effect on --graph: it was recorded so, or not"
    notes = [lost] if "consume_grads" in line.given else []
    return replace(answer, notes=[*notes, *optimizer_notes(options)])


def _recorded(
    workload: Workload, backend: Backend, options: PlanOptions, file: OutputFile | None
) -> tuple[ProgramProblem, Sequence[Named]]:
    """The program as a problem, and what named strategies take."""
    from ckptcli.simulation.graph_file import written
    from ckptcli.simulation.recorder import record
    from ckptcli.simulation.simulator import Simulator
    from ckptcli.simulation.timing import timed

    graph = record(workload, backend, workload.consumes)
    graph = timed(graph, workload, backend)
    if file is not None:
        file.write(json.dumps(written(graph)) + "\n")
    return _problem(graph, options), Simulator(graph).named()


def _problem(graph: CostGraph, options: PlanOptions) -> ProgramProblem:
    """The program with the cost of the options: operations, which are the same on every machine,
    but for a frontier.

    Raises:
        UsageError: the cost is time, and the program was not timed; or what may be moved to the
            host has no price in it.
    """
    from ckptcli.planning.problems.program import COSTS, ProgramProblem

    name = options.recorded.cost_name
    if name == "time" and not graph.is_timed:
        raise UsageError(
            f"--cost time: {graph.title} was not timed, or does something else in each pass",
            "use --cost flops",
        )
    if name is None:
        name = "time" if options.recorded.pareto and graph.is_timed else "flops"
    return ProgramProblem(graph, COSTS[name], moving=moving_of(options, name))


@dataclass(frozen=True)
class PlannedProgram(PlanAnswer):
    """The plan for a program; see `PlanAnswer`."""

    choice: Choice
    measured: Measured | None
    points: Sequence[Point] | None
    notes: Sequence[str] = ()
    counterpart: Counterpart | None = None

    @property
    def feasible(self) -> bool:
        return self.choice.plan.feasible

    @property
    def is_wrong(self) -> bool:
        measured = self.measured
        return measured is not None and not (
            measured.within_budget and measured.gradients_equal is not False
        )

    def data(self) -> str:
        from ckptcli.cli.json_output import json_text

        tape = self.choice.tape
        actions = {} if tape is None else {"actions": tape.to_json()["actions"]}
        return json_text({**self._object(self.points), **actions})

    def exported(self) -> str:
        """For `--strategy plan:FILE`, on one line."""
        tape = self.choice.tape
        plan = {} if tape is None else tape.to_json()
        return json.dumps({**self._object(None), **plan}) + "\n"

    def _object(self, points: Sequence[Point] | None) -> dict[str, Any]:
        from ckptcli.planning.tape.choice_json import choice_object

        there = None if self.counterpart is None else asdict(self.counterpart)
        return {**choice_object(self.choice, self.measured, points), "in_jax": there}

    def page(self) -> str:
        from ckptcli.report.plan_page import plan_page

        return plan_page(self.choice, self.measured, self.points)

    def render(self, screen: Screen) -> str:
        from ckptcli.report.program_plan import render_choice

        return render_choice(self.choice, self.measured, self.points, self.counterpart, screen)


class _Planning:
    """Plans and runs as the options say."""

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def answer(
        self,
        problem: ProgramProblem,
        named: Sequence[Named],
        program: tuple[Workload, Backend] | None,
    ) -> PlannedProgram:
        """The plan, measured if there is a program to run."""
        from ckptcli.planning.tape.choice import choose
        from ckptcli.planning.tape.frontier import frontier

        options = self.options
        limit, deadline = program_limit(options, problem.graph), self._deadline()
        budget = budget_of(options.problem.budget_text) if limit is None else limit.budget_bytes
        choice = choose(problem, budget, named, options.planner.planner_name, deadline)
        choice = replace(choice, limit=limit)
        points = None
        if options.recorded.pareto:
            points = frontier(problem, named, lambda: deadline.passed)
        measured = None
        if options.recorded.run and program is not None and choice.tape is not None:
            measured = self._measure(choice, *program)
        return PlannedProgram(choice, measured, points)

    def _deadline(self) -> Deadline:
        """Only where it was asked for: without it the same budget gives the same plan."""
        from ckptcli.planning.planners.base import Deadline

        return Deadline(self.options.planner.time_limit_s)

    def _measure(self, choice: Choice, workload: Workload, backend: Backend) -> Measured:
        """The plan, run, and `none` beside it where that fits.

        Raises:
            OutOfMemoryError: the plan does not fit in the memory that there is.
        """
        from ckptcli.checkpoint.planned import strategy_of
        from ckptcli.errors import OutOfMemoryError
        from ckptcli.profiling.planned_pass import measure_plan

        assert choice.tape is not None
        self._check_room(choice, "the plan", choice.plan.peak or 0, backend)
        none = next((n.peak_bytes for n in choice.named if n.name == "none"), 0)
        try:
            self._check_room(choice, "`none`", none, backend)
            beside_none = True
        except OutOfMemoryError:
            beside_none = False
        return measure_plan(
            workload,
            strategy_of(choice.tape, "plan"),
            backend,
            choice.plan.budget,
            choice.problem.graph.consumes,
            beside_none,
        )

    def _check_room(self, choice: Choice, what: str, peak_bytes: int, backend: Backend) -> None:
        if self.options.memory.no_memory_check:
            return
        from ckptcli.profiling.memory_needed import check_bytes

        graph = choice.problem.graph
        needed_bytes = graph.base_bytes + peak_bytes
        needs = f"{what} of {graph.title} needs {units.exact_size(needed_bytes)}"
        check_bytes(needed_bytes, needs, "give a smaller --budget", backend)
