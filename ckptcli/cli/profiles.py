"""How `ckpt run` carries out a profile: a workload under strategies, measured and reported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from ckptcli.cli.devices import open_device
from ckptcli.cli.engines import opened_engines
from ckptcli.cli.experiments import experiment_of, run_experiment
from ckptcli.cli.exports import Exports, stdout_is_data
from ckptcli.cli.logger import open_log_sink
from ckptcli.cli.programs import open_programs, program_notes
from ckptcli.cli.stops import Stops
from ckptcli.cli.strategy_choice import check_layers, parse_strategies, perturbed_strategies
from ckptcli.cli.streams import Progress, warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import FAILED, FAILED_CONDITION, UNTRUSTWORTHY, WRONG
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.listing import options_of, values_of
from ckptcli.options.words import child_words
from ckptcli.units import duration

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.cli.line import Line
    from ckptcli.config import LoggerSettings
    from ckptcli.measure.conditions import Condition
    from ckptcli.measure.record import Failure, RunRecord
    from ckptcli.peers.base import Engine
    from ckptcli.workloads.base import Workload

REFERENCE = "none"


def run_profile(options: RunOptions, line: Line) -> int:
    """`ckpt run` of a workload, or of the experiment that the options name instead."""
    from ckptcli.measure.conditions import check_applies, parse_condition
    from ckptcli.measure.machine import blas_threads

    strategies, reference = _with_reference(options)
    gates = [parse_condition(text) for text in options.gates.conditions]
    names = [strategy.name for strategy in strategies]
    for gate in gates:
        check_applies(gate, names, len(names) > 1 and REFERENCE in names)
    # The threads are set before anything loads the array library, which may read them but once;
    # it is loaded before signals count, since an import does not survive an interrupt. So are the
    # libraries of the engines.
    threads = options.device.threads
    with blas_threads(threads) as threads_warning:
        importlib.import_module("ckptcli.profiling.profile")
        with (
            opened_engines(options.peers.engine_names, threads) as (engines, notes),
            Stops(options.rounds.timeout_s) as stops,
        ):
            if (experiment := experiment_of(options)) is not None:
                return run_experiment(options, line, experiment, stops)
            job, warnings = _job(options, line, strategies, reference, engines)
            warnings += [*([threads_warning] if threads_warning else []), *notes]
            return _profile_and_report(options, line, job, warnings, gates, stops)
    return stops.exit_code


@dataclass(frozen=True, slots=True)
class _Job:
    """What is run; `reference` is the strategy that was added to compare with."""

    workload: Workload
    strategies: Sequence[Strategy]
    reference: str | None
    backend: Backend
    engines: Sequence[Engine]


def _with_reference(options: RunOptions) -> tuple[list[Strategy], str | None]:
    """The strategies to run, and the name of the one that was added to compare with."""
    strategies = parse_strategies(options.strategies.strategy_texts)
    if not strategies:
        return parse_strategies([REFERENCE, "balanced"]), None
    alone = len(strategies) == 1 and strategies[0].name != REFERENCE
    if alone and not options.rounds.no_reference:
        return [*parse_strategies([REFERENCE]), *strategies], REFERENCE
    return strategies, None


def _job(
    options: RunOptions,
    line: Line,
    strategies: Sequence[Strategy],
    reference: str | None,
    engines: Sequence[Engine],
) -> tuple[_Job, list[str]]:
    """The job, and warnings."""
    workload, warnings = _one_workload(options, line)
    check_layers(strategies, workload)
    fault = options.fault.perturb_text
    strategies = perturbed_strategies(fault, strategies, [workload])[0]
    backend = open_device(options.device, options.workload.dtype, options.notes.quiet)
    if engines:
        from ckptcli.profiling.peer_passes import check_peers

        check_peers(engines, workload, backend)
    return _Job(workload, strategies, reference, backend, engines), warnings


def _one_workload(options: RunOptions, line: Line) -> tuple[Workload, list[str]]:
    workloads = open_programs(options.program, options.workload, options.memory)
    warnings = program_notes(line, options.program, workloads)
    if len(workloads) > 1:
        text = options.program.workload_text
        raise UsageError(
            f"`{text}` stands for {len(workloads)} programs, `ckpt run` profiles one",
            f"name one, `--workload {text}#0`" if ":" in text else "give each option one value",
        )
    fault = options.fault.perturb_text
    wrong = [f"recomputation is wrong on purpose: {fault}"] if fault else []
    return workloads[0], [*warnings, *wrong]


def _profile_and_report(
    options: RunOptions,
    line: Line,
    job: _Job,
    warnings: Sequence[str],
    gates: Sequence[Condition],
    stops: Stops,
) -> int:
    from ckptcli.profiling.out_of_memory import PassOutOfMemory

    with Exports(options.export, options.data) as exports:
        try:
            record = _profile(options, line.found.settings, job, exports, stops)
        except PassOutOfMemory as error:
            return _tell_failures(error.failures)
        record = replace(record, warnings=(*warnings, *record.warnings))
        exports.write(record)
        _print(options, record, exports)
        warn(record.warnings, options.notes.quiet)
        exports.check()
        code = _tell_failures(record.failures)
        return code or _exit_code(record, gates, options.gates.strict) or stops.exit_code


def _profile(
    options: RunOptions, settings: LoggerSettings, job: _Job, exports: Exports, stops: Stops
) -> RunRecord:
    """The record of the run; `exports` get it after every round."""
    from ckptcli.backends.allocator import reuse_freed_memory
    from ckptcli.measure.rounds import Plan
    from ckptcli.profiling.processes import run_in_processes
    from ckptcli.profiling.profile import check_fits, profile

    if not options.memory.no_memory_check:
        check_fits(job.workload, job.strategies, job.backend)
    progress = Progress(options.notes.quiet)
    rounds = options.rounds

    def tell(phase: str, done: int, most: int) -> None:
        stops.check()
        progress.tell(phase, done, most)

    def finished(partial: RunRecord) -> None:
        exports.write(partial)
        progress.estimate(_estimate(partial))

    reuse_freed_memory()
    notes = _log_passes(job, settings, stdout_is_data(options.export, options.data))
    try:
        if rounds.processes > 1:
            words = child_arguments(options)
            record = run_in_processes(words, rounds.processes, progress=tell, finished=finished)
            record = replace(record, config=recorded(options))
        else:
            record = profile(
                job.workload,
                job.strategies,
                reference=job.reference,
                backend=job.backend,
                plan=Plan(rounds.reps, rounds.warmup, rounds.max_time_s, options.workload.seed),
                threshold=options.threshold.threshold_percent / 100.0,
                engines=job.engines,
                config=recorded(options),
                progress=tell,
                finished=finished,
            )
    finally:
        progress.end()
    return replace(record, warnings=(*notes, *record.warnings))


def _estimate(record: RunRecord) -> str:
    return ", ".join(
        f"{strategy.strategy} {duration(strategy.median_s('total'))}"
        for strategy in record.strategies
    )


def child_arguments(options: RunOptions) -> list[str]:
    """The command line of one measuring process: its share of the rounds, or of their time."""
    processes = options.rounds.processes
    reps = options.rounds.reps
    share = {
        "reps": None if reps is None else -(-reps // processes),
        "max_time_s": options.rounds.max_time_s / processes,
    }
    ours = {"as_json": True, "no_memory_check": True}  # what cannot fit is refused already
    return child_words(options_of(RunOptions), {**values_of(options), **share, **ours})


def recorded(options: RunOptions) -> dict[str, object]:
    """The settings to keep in the record, by the names of the options."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in sorted(values_of(options).items())
    }


def _log_passes(job: _Job, settings: LoggerSettings, as_data: bool) -> list[str]:
    """One untimed pass a strategy for an enabled logger; returns warnings."""
    from ckptcli.profiling.log_pass import log_pass

    sinks = open_log_sink(settings, sys.stderr if as_data else sys.stdout)
    for sink in sinks:
        with sink:
            for strategy in job.strategies:
                log_pass(job.workload, strategy, sink, job.backend)
    if as_data and sinks and settings.stdout:
        return ["log lines for stdout went to stderr: stdout is the result as data"]
    return []


def _print(options: RunOptions, record: RunRecord, exports: Exports) -> None:
    """Exactly one thing on stdout: an export, the JSON object, or the screen."""
    if exports.to_stdout is not None:
        exports.print(record)
    elif options.data.as_json:
        from ckptcli.cli.json_output import print_json
        from ckptcli.measure.record_json import record_object

        print_json(record_object(record))
    else:
        from ckptcli.cli.screens import open_screen
        from ckptcli.report.console import render_run

        screen = open_screen(options.screen)
        click.echo(
            render_run(record, screen, verbose=options.details.verbose), nl=False, color=True
        )


def _tell_failures(failures: Sequence[Failure]) -> int:
    """Say which strategies ran out of memory, and list what was live then; 1 if one did."""
    from ckptcli.report.failures import failure_lines

    for failure in failures:
        for line in failure_lines(failure):
            click.echo(line, err=True)
    return FAILED if failures else 0


def _exit_code(record: RunRecord, gates: Sequence[Condition], strict: bool) -> int:
    """5 for a wrong gradient, ours or a peer's, 3 for a condition that holds, 4 under --strict."""
    from ckptcli.measure.conditions import Subject, fired

    reference = record.reference
    subjects = [
        Subject(s.strategy, s, None if s is reference else reference, s.ratios, s is reference)
        for s in record.strategies
    ]
    sentences = [sentence for gate in gates for sentence in fired(gate, subjects)]
    for sentence in sentences:
        click.echo(f"failed: {sentence}", err=True)
    if any(s.judgement and s.judgement.word == "wrong" for s in record.strategies):
        return WRONG
    if any(peer.agreement and not peer.agreement.agrees for peer in record.peers):
        return WRONG
    if sentences:
        return FAILED_CONDITION
    unclear = any(s.ratios and s.ratios["total"].verdict == "unclear" for s in record.strategies)
    return UNTRUSTWORTHY if strict and unclear else 0
