"""`ckpt run`: the main job. Profiles a workload under each strategy and reports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.options import (
    complete_strategy,
    open_from_options,
    parse_strategies,
    workload_options,
)
from ckptcli.cli.settings import logger_settings, open_log_sink
from ckptcli.cli.streams import (
    end_progress,
    has_glyphs,
    progress_line,
    screen_width,
    use_color,
    warn,
)
from ckptcli.config import LoggerSettings
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.measure.record import RunRecord
    from ckptcli.workloads.base import Workload

REFERENCE = "none"
INTERRUPTED = 130


@click.command("run")
@click.option(
    "-s",
    "--strategy",
    "strategy_texts",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_strategy,
    help="Strategy, repeatable; `ckpt strategies` lists them.  [default: none and balanced]",
)
@workload_options(layers=8, n=1024)
@click.option(
    "--reps",
    type=click.IntRange(1),
    metavar="R",
    help="Timed rounds; each runs every strategy once.  [default: until the intervals are narrow]",
)
@click.option(
    "--max-time",
    "max_time_s",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Without --reps: begin no round after this, but make at least 9.",
)
@click.option(
    "--threshold",
    "threshold_percent",
    type=click.FloatRange(0, 50),
    default=2.0,
    show_default=True,
    metavar="PERCENT",
    help="Times within this of the reference's are `same`.",
)
@click.option(
    "--warmup",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Rounds before them: shown, never in a median.",
)
@click.option("--threads", type=click.IntRange(1), help="BLAS threads.  [default: as they are]")
@click.option(
    "--no-reference", is_flag=True, help="With one strategy: do not run `none` to compare with."
)
@click.option("--force", is_flag=True, help="Run even if the network cannot fit in memory.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, schema ckpt.run/1.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour in the output.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress, no warnings.")
@click.option("-v", "--verbose", is_flag=True, help="List what was live at the peak.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    strategy_texts: tuple[str, ...],
    config_path: Path | None,
    no_reference: bool,
    threads: int | None,
    as_json: bool,
    color: str,
    quiet: bool,
    verbose: bool,
    **_: Any,
) -> int:
    """Profile a workload: memory held and peak, recomputation, time, for each strategy.

    Memory comes from an exact account of one pass, time from interleaved rounds of others.
    """
    settings = logger_settings(config_path)
    strategies, reference = _with_reference(parse_strategies(strategy_texts), no_reference)
    workload, warnings = _one_workload(ctx)
    record = _profile(ctx, workload, strategies, reference, settings, warnings)
    if as_json:
        from ckptcli.measure.record_json import record_json

        click.echo(record_json(record), nl=False)
    else:
        from ckptcli.report.console import Screen, render_run

        screen = Screen(
            screen_width(sys.stdout), use_color(color, sys.stdout), has_glyphs(sys.stdout)
        )
        click.echo(render_run(record, screen, verbose=verbose), nl=False, color=True)
    warn(record.warnings, quiet)
    return INTERRUPTED if record.partial else 0


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
            f"`{text}` holds {len(workloads)} cases, `ckpt run` profiles one",
            f"name one, `--workload {text}#0`",
        )
    return workloads[0], warnings


def _profile(
    ctx: click.Context,
    workload: Workload,
    strategies: Sequence[Strategy],
    reference: str | None,
    settings: LoggerSettings,
    warnings: list[str],
) -> RunRecord:
    """The record of the run, with the warnings of the command line in it."""
    from ckptcli.backends.allocator import reuse_freed_memory
    from ckptcli.measure.machine import blas_threads
    from ckptcli.measure.rounds import Plan
    from ckptcli.profiling.profile import check_fits, profile

    params = ctx.params
    if not params["force"]:
        check_fits(workload, strategies)
    reuse_freed_memory()
    quiet = params["quiet"]
    with blas_threads(params["threads"]) as threads_warning:
        warnings += [threads_warning] if threads_warning else []
        warnings += _log_passes(workload, strategies, settings, params["as_json"])
        try:
            record = profile(
                workload,
                strategies,
                reference=reference,
                plan=Plan(params["reps"], params["warmup"], params["max_time_s"], params["seed"]),
                threshold=params["threshold_percent"] / 100.0,
                config=_config(params),
                progress=progress_line(quiet),
            )
        finally:
            end_progress(quiet)
    return replace(record, warnings=(*warnings, *record.warnings))


def _log_passes(
    workload: Workload, strategies: Sequence[Strategy], settings: LoggerSettings, as_json: bool
) -> list[str]:
    """One untimed pass a strategy for an enabled logger; returns warnings."""
    from ckptcli.profiling.log_pass import log_pass

    sinks = open_log_sink(settings, sys.stderr if as_json else sys.stdout)
    for sink in sinks:
        with sink:
            for strategy in strategies:
                log_pass(workload, strategy, sink)
    if as_json and sinks and settings.stdout:
        return ["log lines for stdout went to stderr: stdout is the JSON object"]
    return []


def _config(params: dict[str, Any]) -> dict[str, object]:
    """The settings to keep in the record: plain values alone."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in sorted(params.items())
        if isinstance(value, str | int | float | tuple | None) and name != "config_path"
    }
