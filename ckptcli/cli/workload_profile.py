"""What `ckpt run` measures of the workload: it under strategies of ckpt's own engine, and beside it
in other libraries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ckptcli.cli.devices import open_device
from ckptcli.cli.experiments import experiment_of, run_experiment
from ckptcli.cli.logger import open_log_sink
from ckptcli.cli.programs import check_dtypes, open_programs, program_notes
from ckptcli.cli.strategy_choice import check_layers, parse_strategies, perturbed_strategies
from ckptcli.cli.subjects.base import Profile
from ckptcli.errors import UsageError
from ckptcli.measure import OURS, REPLAY
from ckptcli.workloads.registry import points_of

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.cli.line import Line
    from ckptcli.cli.stops import Stops
    from ckptcli.cli.subjects.base import Measurement
    from ckptcli.measure.record import RunRecord
    from ckptcli.options.commands.run import RunOptions
    from ckptcli.options.points import Point
    from ckptcli.peers.base import Engine
    from ckptcli.profiling.points import ProgramPoint
    from ckptcli.verify.fault import Fault
    from ckptcli.workloads.base import Workload

REFERENCE = "none"


class WorkloadProfile(Profile):
    """A workload by its name, or a program of the user's own; see `Profile`."""

    modules: ClassVar[Sequence[str]] = ("ckptcli.profiling.profile", "ckptcli.profiling.points")
    has_pass: ClassVar[bool] = True

    def __init__(self, options: RunOptions, line: Line) -> None:
        self._options = options
        self._line = line
        self._strategies, self._reference = _with_reference(options)
        names = [strategy.name for strategy in self._strategies]
        engine_names = options.peers.engine_names
        engines = [name for name in dict.fromkeys(engine_names) if name != OURS]
        engines = [*([REPLAY] if options.replaying.replay else []), *engines]
        self.row_names = [*names, *(f"{engine} {name}" for engine in engines for name in names)]
        self.has_reference = len(self.row_names) > 1 and (
            REFERENCE in names or self._reference is not None
        )
        self._planned: Sequence[ProgramPoint]
        self._common: dict[str, object]
        self._fault: Fault | None = None
        self._limit_bytes: int | None = None
        self._backend: Backend
        self._engines: Sequence[Engine]

    def instead(self, stops: Stops) -> int | None:
        experiment = experiment_of(self._options)
        if experiment is None:
            return None
        return run_experiment(self._options, self._line, experiment, stops)

    def open(self, engines: Sequence[Engine]) -> list[str]:
        from ckptcli.profiling.device_memory import limit_of
        from ckptcli.profiling.memory_needed import check_fits
        from ckptcli.profiling.profile import check_engines

        options = self._options
        self._limit_bytes = limit_of(options.limit.device_memory)
        self._engines = engines
        workloads, notes = _workloads(options, self._line)
        for workload in workloads:
            check_layers(self._strategies, workload)
        self._strategies, self._fault = perturbed_strategies(
            options.fault.perturb_text, self._strategies, workloads
        )
        self._backend = open_device(options.device, options.workload.dtype, options.notes.quiet)
        check_dtypes(options.program, workloads, self._backend)
        for workload in workloads:
            check_engines(engines, workload, self._backend)
            if not options.memory.no_memory_check:
                passing = _passing(workload, options)
                check_fits(passing, self._strategies, self._backend, engines, at_once=True)
        self._planned = _planned(options, workloads)
        self._common = _common(options, workloads, self._planned[0].point)
        if engines and options.gradients.consume_grads:
            notes.append("--consume-grads has an effect on ckpt's own rows alone")
        return [*notes, *_without_none(self._reference)]

    def before(self, stdout_is_data: bool) -> list[str]:
        """One untimed pass a strategy for an enabled logger."""
        from ckptcli.profiling.log_pass import heading, log_pass

        settings = self._line.found.settings
        sinks = open_log_sink(settings, sys.stderr if stdout_is_data else sys.stdout)
        for sink in sinks:
            with sink:
                for planned in self._planned:
                    workload = planned.open()
                    for strategy in self._strategies:
                        if len(self._strategies) > 1 or len(self._planned) > 1:
                            sink.begin(heading(workload, strategy, self._backend))
                        log_pass(workload, strategy, sink, self._backend)
                    del workload  # what it holds, before the next one is opened
        if stdout_is_data and sinks and settings.stdout:
            return ["log lines for stdout went to stderr: stdout is the result as data"]
        return []

    def measure(self, measurement: Measurement) -> RunRecord:
        record = self._profile(measurement)
        return replace(record, warnings=(*record.warnings, *_without_effect(self._fault, record)))

    def _profile(self, measurement: Measurement) -> RunRecord:
        from ckptcli.profiling.points import Surroundings, profile_points
        from ckptcli.profiling.profile import profile

        if len(self._planned) > 1:
            of = Surroundings(
                workload=self._common,
                strategies=self._strategies,
                reference=self._reference,
                backend=self._backend,
                engines=self._engines,
                plan=measurement.plan,
                threshold=measurement.threshold,
                limit_bytes=self._limit_bytes,
                config=measurement.config,
                command=measurement.command,
            )
            return profile_points(self._planned, of, measurement.tell, measurement.finished)
        return profile(
            self._planned[0].open(),
            self._strategies,
            reference=self._reference,
            backend=self._backend,
            plan=measurement.plan,
            threshold=measurement.threshold,
            limit_bytes=self._limit_bytes,
            engines=self._engines,
            config=measurement.config,
            command=measurement.command,
            progress=measurement.tell,
            finished=measurement.finished,
        )


def _without_effect(fault: Fault | None, record: RunRecord) -> list[str]:
    """What to say of a fault on purpose that shows in no gradient."""
    if fault is None or any(row.is_wrong for row in record.rows):
        return []
    if not fault.hits:
        return [f"--perturb-replay {fault.text} met no value that {fault.met}"]
    return [
        f"--perturb-replay {fault.text} moved no gradient; `ckpt check` looks at the values too"
    ]


def _with_reference(options: RunOptions) -> tuple[list[Strategy], str | None]:
    """The strategies to run, and the name of the one to compare with where it was not asked for:
    `none`, which joins, or the first of several where it must not.
    """
    strategies = parse_strategies(options.strategies.strategy_texts)
    if not strategies:
        return parse_strategies([REFERENCE, "balanced"]), None
    if any(strategy.name == REFERENCE for strategy in strategies):
        return strategies, None
    if not options.rounds.no_reference:
        return [*parse_strategies([REFERENCE]), *strategies], REFERENCE
    return strategies, strategies[0].name if len(strategies) > 1 else None


def _without_none(reference: str | None) -> list[str]:
    """What to say of a run whose reference is a strategy that may itself be wrong."""
    if reference in (None, REFERENCE):
        return []
    return [
        f"`none` was not run: `{reference}` is the reference, and whether its own gradient is "
        "right was not looked at"
    ]


def _workloads(options: RunOptions, line: Line) -> tuple[list[Workload], list[str]]:
    """The program, or that of each point; and warnings."""
    workloads = open_programs(options.program, options.workload, options.memory)
    warnings = program_notes(line, workloads)
    text = options.program.workload_text
    if len(workloads) > len(points_of(text, options.workload)):
        raise UsageError(
            f"`{text}` stands for {len(workloads)} programs, `ckpt run` profiles one",
            f"name one, `--workload {text}#0`",
        )
    fault = options.fault.perturb_text
    wrong = [f"recomputation is wrong on purpose: {fault}"] if fault else []
    return workloads, [*dict.fromkeys(warnings), *wrong]


def _planned(options: RunOptions, workloads: Sequence[Workload]) -> list[ProgramPoint]:
    """What opens each program; one of several is opened anew, for it holds what it has loaded."""
    from ckptcli.profiling.points import ProgramPoint

    points = points_of(options.program.workload_text, options.workload)
    if len(points) == 1:
        return [ProgramPoint({}, lambda: _passing(workloads[0], options))]

    def opener(point: Point) -> Callable[[], Workload]:
        opened = partial(open_programs, options.program, point.options, options.memory)
        return lambda: _passing(opened()[0], options)

    return [ProgramPoint(point.values, opener(point)) for point in points]


def _passing(workload: Workload, options: RunOptions) -> Workload:
    """The program whose passes are as the options say."""
    consumes, replays = options.gradients.consume_grads, options.replaying.replay
    return workload.passing(consumes, replays) if consumes or replays else workload


def _common(
    options: RunOptions, workloads: Sequence[Workload], varying: Iterable[str]
) -> dict[str, object]:
    """What the record says of all programs; lists are told as they were given."""
    from ckptcli.measure.points import common_workload

    whole = [{**workload.settings, "title": workload.title} for workload in workloads]
    return common_workload(whole, {name: getattr(options.workload, name) for name in varying})
