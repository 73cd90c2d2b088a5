"""`ckpt run`: the main job. Profiles a workload under each strategy and reports."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.devices import device_options, open_device
from ckptcli.cli.engines import engine_option, opened_engines
from ckptcli.cli.exit_codes import FAILED, FAILED_CONDITION, UNTRUSTWORTHY, WRONG
from ckptcli.cli.experiments import experiment_of, run_experiment
from ckptcli.cli.exports import Exports
from ckptcli.cli.modules import module_option, run_module
from ckptcli.cli.options import (
    check_layers,
    gate_options,
    measuring_options,
    open_from_options,
    output_options,
    parse_strategies,
    perturb_option,
    perturbed_strategies,
    strategy_option,
    workload_options,
)
from ckptcli.cli.settings import SettingsCommand, logger_settings, open_log_sink
from ckptcli.cli.stops import Stops
from ckptcli.cli.streams import Progress, has_glyphs, screen_width, use_color, warn
from ckptcli.errors import UsageError
from ckptcli.units import duration
from ckptcli.workloads.options import option_texts

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.config import LoggerSettings
    from ckptcli.measure.conditions import Condition
    from ckptcli.measure.record import Failure, RunRecord
    from ckptcli.peers.base import Engine
    from ckptcli.workloads.base import Workload

REFERENCE = "none"
ROUNDS_OVER_PROCESSES = 25
"""Without --reps, how many rounds --processes spreads."""


@click.command("run", cls=SettingsCommand)
@strategy_option(default="none and balanced")
@workload_options(layers=8, n=1024)
@device_options
@engine_option
@module_option
@measuring_options
@output_options
@gate_options
@perturb_option
@click.option("--force", is_flag=True, help="Run what cannot fit in memory; replace export files.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no warnings.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    strategy_texts: tuple[str, ...],
    config_path: Path | None,
    no_reference: bool,
    quiet: bool,
    conditions: tuple[str, ...],
    engine_names: tuple[str, ...],
    export_paths: tuple[str, ...],
    format_name: str | None,
    force: bool,
    timeout_s: float | None,
    **_: Any,
) -> int:
    """Profile a workload: memory held and peak, recomputation, time, for each strategy.

    Memory comes from an exact account of one pass, time from interleaved rounds of others.
    """
    from ckptcli.measure.conditions import check_applies, parse_condition
    from ckptcli.measure.machine import blas_threads
    from ckptcli.profiling.out_of_memory import PassOutOfMemory

    if ctx.params["module_text"] is not None:
        return run_module(ctx)
    settings = logger_settings(config_path)
    strategies, reference = _with_reference(parse_strategies(strategy_texts), no_reference)
    gates = [parse_condition(text) for text in conditions]
    names = [strategy.name for strategy in strategies]
    for gate in gates:
        check_applies(gate, names, len(names) > 1 and REFERENCE in names)
    # The threads are set before anything loads the array library, which may read them but once;
    # it is loaded before signals count, since an import does not survive an interrupt. So are the
    # libraries of the engines.
    threads = ctx.params["threads"]
    with blas_threads(threads) as threads_warning:
        profiling = importlib.import_module("ckptcli.profiling.profile")
        with opened_engines(engine_names, threads) as (engines, notes), Stops(timeout_s) as stops:
            if (experiment := experiment_of(ctx.params)) is not None:
                return run_experiment(ctx, experiment, stops)
            workload, warnings = _one_workload(ctx)
            check_layers(strategies, workload)
            strategies = perturbed_strategies(ctx, strategies, [workload])[0]
            backend = open_device(ctx.params)
            profiling.check_engines(engines, workload, backend)
            warnings += [*([threads_warning] if threads_warning else []), *notes]
            with Exports(export_paths, format_name, force) as exports:
                job = _Job(workload, strategies, reference, backend, engines)
                try:
                    record = _profile(ctx, job, settings, exports, stops)
                except PassOutOfMemory as error:
                    return _tell_failures(error.failures)
                record = replace(record, warnings=(*warnings, *record.warnings))
                exports.write(record)
                _print(ctx.params, record, exports)
                warn(record.warnings, quiet)
                exports.check()
                code = _tell_failures(record.failures)
                return code or _exit_code(record, gates, ctx.params["strict"]) or stops.exit_code
    return stops.exit_code


def _with_reference(
    strategies: list[Strategy], no_reference: bool
) -> tuple[list[Strategy], str | None]:
    """The strategies to run, and the name of the one that was added to compare with."""
    if not strategies:
        return parse_strategies([REFERENCE, "balanced"]), None
    if len(strategies) == 1 and strategies[0].name != REFERENCE and not no_reference:
        return [*parse_strategies([REFERENCE]), *strategies], REFERENCE
    return strategies, None


def _one_workload(ctx: click.Context) -> tuple[Workload, list[str]]:
    workloads, warnings = open_from_options(ctx)
    if len(workloads) > 1:
        text = ctx.params["workload_text"]
        raise UsageError(
            f"`{text}` stands for {len(workloads)} programs, `ckpt run` profiles one",
            f"name one, `--workload {text}#0`" if ":" in text else "give each option one value",
        )
    fault = ctx.params["perturb_text"]
    return workloads[0], [
        *warnings,
        *([f"recomputation is wrong on purpose: {fault}"] * bool(fault)),
    ]


@dataclass(frozen=True, slots=True)
class _Job:
    """What is run; `reference` is the strategy that was added to compare with."""

    workload: Workload
    strategies: Sequence[Strategy]
    reference: str | None
    backend: Backend
    engines: Sequence[Engine]


def _profile(
    ctx: click.Context, job: _Job, settings: LoggerSettings, exports: Exports, stops: Stops
) -> RunRecord:
    """The record of the run; `exports` get it after every round."""
    from ckptcli.backends.allocator import reuse_freed_memory
    from ckptcli.measure.rounds import Plan
    from ckptcli.profiling.memory_needed import check_fits
    from ckptcli.profiling.processes import run_in_processes
    from ckptcli.profiling.profile import profile

    params = ctx.params
    if not params["force"]:
        check_fits(job.workload, job.strategies, job.backend)
    progress = Progress(params["quiet"])

    def tell(phase: str, done: int, most: int) -> None:
        stops.check()
        progress.tell(phase, done, most)

    def finished(partial: RunRecord) -> None:
        exports.write(partial)
        progress.estimate(_estimate(partial))

    reuse_freed_memory()
    notes = _log_passes(job, settings, _stdout_is_data(params))
    try:
        if params["processes"] > 1:
            record = run_in_processes(
                _child_arguments(params, job),
                params["processes"],
                progress=tell,
                finished=finished,
            )
            record = replace(record, config=_config(params))
        else:
            record = profile(
                job.workload,
                job.strategies,
                reference=job.reference,
                backend=job.backend,
                plan=Plan(params["reps"], params["warmup"], params["max_time_s"], params["seed"]),
                threshold=params["threshold_percent"] / 100.0,
                engines=job.engines,
                config=_config(params),
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


def _child_arguments(params: dict[str, Any], job: _Job) -> list[str]:
    """The command line of one measuring process."""
    from ckptcli.workloads.registry import options_without_effect

    _, unused = options_without_effect(params["workload_text"])
    total = params["reps"] or ROUNDS_OVER_PROCESSES
    options = {
        "--workload": params["workload_text"],
        **{
            f"--{name.replace('_', '-')}": params[name]
            for name in option_texts()
            if name not in unused
        },
        "--backend": params["backend_name"],
        "--device": params["device_name"],
        "--threads": params["threads"],
        "--perturb-replay": params["perturb_text"],
        "--warmup": params["warmup"],
        "--threshold": params["threshold_percent"],
        "--reps": -(-total // params["processes"]),
    }
    named = [strategy.name for strategy in job.strategies if strategy.name != job.reference]
    return [
        *(word for name in named for word in ("--strategy", name)),
        *(word for name in params["engine_names"] for word in ("--engine", name)),
        *(
            word
            for option, value in options.items()
            if value is not None
            for word in (option, str(value))
        ),
        *(["--no-reference"] if params["no_reference"] else []),
        "--force",
        "--json",
    ]


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


def _stdout_is_data(params: dict[str, Any]) -> bool:
    return params["as_json"] or "-" in params["export_paths"]


def _config(params: dict[str, Any]) -> dict[str, object]:
    """The settings to keep in the record: plain values alone."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in sorted(params.items())
        if isinstance(value, str | int | float | tuple | None)
    }


def _print(params: dict[str, Any], record: RunRecord, exports: Exports) -> None:
    """Exactly one thing on stdout: an export, the JSON object, or the screen."""
    if exports.to_stdout is not None:
        exports.print(record)
    elif params["as_json"]:
        from ckptcli.measure.record_json import record_json

        click.echo(record_json(record), nl=False)
    else:
        from ckptcli.report.console import Screen, render_run

        screen = Screen(
            params["width"] or screen_width(sys.stdout),
            use_color(params["color"], sys.stdout),
            has_glyphs(sys.stdout),
        )
        text = render_run(record, screen, verbose=params["verbose"])
        click.echo(text, nl=False, color=True)


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
