"""How a subject of `ckpt run` is carried out: opened, measured, exported, printed, judged."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import click

from ckptcli.cli.devices import backend_words
from ckptcli.cli.engines import opened_engines
from ckptcli.cli.exports import Exports, stdout_is_data
from ckptcli.cli.stops import Stops
from ckptcli.cli.streams import Progress, hint, say, warn
from ckptcli.cli.subjects.base import Measurement, Profile, Subject
from ckptcli.errors import UsageError
from ckptcli.exit_codes import FAILED, FAILED_CONDITION, UNTRUSTWORTHY, WRONG
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.effects import Kind, takes, without_effect
from ckptcli.options.listing import options_of, values_of
from ckptcli.options.option import Option
from ckptcli.options.words import child_words
from ckptcli.units import duration

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.measure.conditions import Condition
    from ckptcli.measure.record import Failure, RunRecord
    from ckptcli.measure.rounds import Plan


def run_subject(subject: Subject, options: RunOptions, line: Line) -> int:
    """Carry out the run that the line asks for; returns the exit code."""
    from ckptcli.measure.conditions import check_applies, parse_condition
    from ckptcli.measure.machine import blas_threads

    profile = subject.profile(options)
    gates = [parse_condition(text) for text in options.gates.conditions]
    for gate in gates:
        check_applies(gate, profile.row_names, profile.has_reference)
    # The threads are set before anything loads the array library, which may read them but once, a
    # workload that is asked what it is too; it is loaded before signals count, and so are the
    # libraries of the engines.
    threads = options.device.threads
    with blas_threads(threads) as threads_warning:
        for module in profile.modules:
            importlib.import_module(module)
        kind = subject.kind(options)
        lost = without_effect(line.options, line.given, kind)
        with (
            opened_engines(subject.engine_names, threads) as (engines, notes),
            Stops(options.rounds.timeout_s) as stops,
        ):
            if (code := profile.instead(stops)) is not None:
                warn(lost, options.notes.quiet)
                return code
            warnings = [*profile.open(engines), *lost, *filter(None, [threads_warning]), *notes]
            run = _Run(kind, profile, options, line.words)
            return _measure_and_report(run, warnings, gates, stops)
    return stops.exit_code


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that is asked for: of what, how, and by which words."""

    kind: Kind
    profile: Profile
    options: RunOptions
    command: Sequence[str]


def _measure_and_report(
    run: _Run, warnings: Sequence[str], gates: Sequence[Condition], stops: Stops
) -> int:
    from ckptcli.profiling.out_of_memory import PassOutOfMemory
    from ckptcli.report.formats import Exporter, draws_pass, exporter_for, no_pass

    def choose(path: str, format_name: str | None) -> Exporter[RunRecord]:
        exporter = exporter_for(path, format_name)
        if draws_pass(exporter) and not run.profile.has_pass:
            raise no_pass(exporter.suffixes[0])
        return exporter

    options = run.options
    with Exports(options.export, options.data, choose) as exports:
        try:
            record = _record(run, exports, stops)
        except PassOutOfMemory as error:
            return _tell_failures(error.failures)
        stops.measured()
        record = replace(record, warnings=(*warnings, *record.warnings))
        exports.write(record)
        _print(options, record, exports)
        warn(record.warnings, options.notes.quiet)
        _tell_next(options, record, exports)
        exports.check()
        code = _tell_failures(record.failures)
        return exit_code_of(record, gates, options.strictness.strict, code) or stops.exit_code


def _record(run: _Run, exports: Exports[RunRecord], stops: Stops) -> RunRecord:
    """The record of the run; `exports` get it after every round."""
    from ckptcli.backends.allocator import reuse_freed_memory
    from ckptcli.profiling.processes import run_in_processes

    options = run.options
    progress = Progress(options.notes.quiet)
    rounds = options.rounds

    def tell(phase: str, done: int, most: int) -> None:
        stops.check()
        progress.tell(phase, done, most)

    def finished(partial: RunRecord) -> None:
        progress.tell_lines(partial, options.details.verbose)
        if partial.rounds:
            exports.write(partial)
            progress.estimate(_estimate(partial))

    reuse_freed_memory()
    notes = run.profile.before(stdout_is_data(options.export, options.data))
    measurement = Measurement(
        plan=_plan(options),
        threshold=options.threshold.threshold_percent / 100.0,
        config=recorded(options, partial(takes, run.kind)),
        command=run.command,
        tell=tell,
        finished=finished,
    )
    try:
        if rounds.processes > 1:
            words = child_arguments(options)
            record = run_in_processes(words, rounds.processes, progress=tell, finished=finished)
            origin = None if record.origin is None else replace(record.origin, command=run.command)
            record = replace(record, config=measurement.config, origin=origin)
        else:
            record = run.profile.measure(measurement)
    finally:
        progress.end()
    return replace(record, warnings=(*notes, *record.warnings))


def _plan(options: RunOptions) -> Plan:
    """How many rounds; none for the memory alone.

    Raises:
        UsageError: rounds that are asked for and are not made.
    """
    from ckptcli.measure.rounds import Plan

    rounds, seed = options.rounds, options.workload.seed
    if not rounds.memory_only:
        return Plan(rounds.reps, rounds.warmup, rounds.max_time_s, seed)
    if rounds.reps is not None or rounds.processes > 1:
        raise UsageError(
            "--memory-only times nothing, and --reps and --processes say how to", "leave out one"
        )
    return Plan(reps=0, warmup=0, seed=seed)


def _estimate(record: RunRecord) -> str:
    """The medians so far, of several programs those of the one that is measured."""
    last = record.rows[-1]
    return ", ".join(
        f"{record.label(row)} {duration(row.median_s('total'))}" for row in record.beside(last)
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
    words = child_words(options_of(RunOptions), {**values_of(options), **share, **ours})
    return [*words, *backend_words(options.device)]


def recorded(
    options: RunOptions, is_taken: Callable[[Option], bool] = lambda _: True
) -> dict[str, object]:
    """The settings to keep in the record, by the names of the options: those that are taken."""
    taken = {option.name for option in options_of(RunOptions) if is_taken(option)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in sorted(values_of(options).items())
        if name in taken
    }


def _print(options: RunOptions, record: RunRecord, exports: Exports[RunRecord]) -> None:
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

        text = render_run(
            record,
            open_screen(options.screen),
            verbose=options.details.verbose,
            quiet=options.notes.quiet,
        )
        click.echo(text, nl=False, color=True)


def _tell_next(options: RunOptions, record: RunRecord, exports: Exports[RunRecord]) -> None:
    """What a reader of the screen may want next, on stderr."""
    if stdout_is_data(options.export, options.data):
        return
    from ckptcli.report.console import next_commands

    for command in next_commands(record, has_page=exports.writes("html")):
        hint(f"next: {command}", options.notes.quiet)


def _tell_failures(failures: Sequence[Failure]) -> int:
    """Say what ran out of memory, and list what was live then; 1 if something did."""
    from ckptcli.report.failures import failure_lines

    for failure in failures:
        for line in failure_lines(failure):
            say(line)
    return FAILED if failures else 0


def exit_code_of(record: RunRecord, gates: Sequence[Condition], strict: bool, failed: int) -> int:
    """5 for a wrong gradient, 1 for a failure, 3 for a condition that holds, 4 under --strict."""
    from ckptcli.measure.conditions import Subject, fired

    subjects = [
        Subject(
            record.name_of(row),
            row,
            record.base_of(row),
            row.engine_ratios or row.ratios,
            row is record.reference_of(row),
            row.point,
        )
        for row in record.rows
        if row.reason is None
    ]
    sentences = [sentence for gate in gates for sentence in fired(gate, subjects)]
    for sentence in sentences:
        say(f"failed: {sentence}")
    for row in record.rows:
        if row.failed:
            say(f"Error: {record.label(row)}: {row.reason}")
    if failed:
        return failed
    if any(row.is_wrong for row in record.rows):
        return WRONG
    if any(row.failed for row in record.rows):
        return FAILED
    if sentences:
        return FAILED_CONDITION
    return UNTRUSTWORTHY if strict and not _is_decided(record) else 0


def _is_decided(record: RunRecord) -> bool:
    """Whether there is a time verdict, and every one is clear; says why if there is none."""
    ratios = [row.ratios["total"] for row in record.rows if row.ratios and "total" in row.ratios]
    if not ratios:
        say("undecided: --strict asks for a verdict, and no two times are compared")
    return bool(ratios) and all(ratio.verdict != "unclear" for ratio in ratios)
