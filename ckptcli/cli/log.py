"""`ckpt log`: one untimed pass; Burn's log lines on stdout, nothing else."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.devices import device_options, open_device
from ckptcli.cli.options import (
    check_layers,
    open_from_options,
    parse_strategies,
    strategy_option,
    workload_options,
)
from ckptcli.cli.settings import SettingsCommand, logger_settings, open_log_sink
from ckptcli.cli.streams import warn
from ckptcli.config import LoggerSettings
from ckptcli.errors import EngineError, UnknownNameError
from ckptcli.events import Event, Fanout, Level, Recorder, Sink
from ckptcli.report.explain import explained_log
from ckptcli.report.log import burn_line
from ckptcli.report.log_diff import log_diff

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.workloads.base import Workload

LEVELS = {"basic": Level.BASIC, "medium": Level.MEDIUM, "full": Level.FULL}


@click.command("log", cls=SettingsCommand)
@strategy_option(default="balanced; a graph case's own")
@click.option(
    "--level",
    "level_name",
    metavar="basic|medium|full",
    help="How much to print; medium prints what basic does, as in Burn.  [default: the "
    "configuration's, else full]",
)
@click.option("--explain", is_flag=True, help="Say of each node what became of it, and sum up.")
@click.option(
    "--diff",
    nargs=2,
    metavar="A B",
    shell_complete=strategy_option,
    help="Set the retrievals of two strategies side by side.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a pass.")
@click.option("--force", is_flag=True, help="Run what cannot fit in memory.")
@click.option("-q", "--quiet", is_flag=True, help="No warnings.")
@workload_options(layers=2, n=64)
@device_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    strategy_texts: tuple[str, ...],
    level_name: str | None,
    explain: bool,
    diff: tuple[str, str] | None,
    as_json: bool,
    force: bool,
    quiet: bool,
    config_path: Path | None,
    **_: Any,
) -> None:
    """Print which values one backward pass retrieves, and which nodes are computed again.

    The lines are Burn's, in Burn's order, with Burn's node ids.
    """
    settings = logger_settings(config_path)
    level = _level(level_name, settings)
    strategies = parse_strategies(diff or strategy_texts)
    workloads, warnings = open_from_options(ctx)
    backend = open_device(ctx.params)
    passes = [
        _Pass(getattr(workload, "index", 0), workload, strategy, backend)
        for workload in workloads
        for strategy in strategies or [_own_strategy(workload)]
    ]
    _check(passes, force)
    warn(warnings, quiet)
    if diff:
        for workload in workloads:
            _print_diff(workload, strategies, backend)
        return
    with ExitStack() as stack:  # one sink for all passes: without `append` it empties its file
        elsewhere = open_log_sink(replace(settings, stdout=False), sys.stderr, level)
        sinks = [stack.enter_context(sink) for sink in elsewhere]
        for one in passes:
            lines, gradients, notes = _run(one, level, explain, sinks)
            where = f"case {one.case}: " if len(workloads) > 1 else ""
            warn([where + note for note in notes], quiet)
            _print(one, lines, gradients if as_json else None)


def _print_diff(workload: Workload, strategies: Sequence[Strategy], backend: Backend) -> None:
    from ckptcli.profiling.log_pass import log_pass

    first, second = Recorder(), Recorder()
    for strategy, recorder in zip(strategies, (first, second)):
        log_pass(workload, strategy, recorder, backend)
    names = strategies[0].name, strategies[1].name
    for line in log_diff(names, first.events, second.events):
        click.echo(line)


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass to run; `case` is the index in the graph file, 0 for another workload."""

    case: int
    workload: Workload
    strategy: Strategy
    backend: Backend


def _level(name: str | None, settings: LoggerSettings) -> Level:
    """The flag's level, else the file's where it is enabled, else full."""
    if name is None:
        return settings.level or Level.FULL
    if name not in LEVELS:
        raise UnknownNameError("level", name, LEVELS)
    return LEVELS[name]


def _own_strategy(workload: Workload) -> Strategy:
    return parse_strategies([getattr(workload, "strategy", None) or "balanced"])[0]


def _check(passes: Sequence[_Pass], force: bool) -> None:
    """Refuse all passes before the first one prints, if one of them cannot run.

    Raises:
        UsageError: a strategy that needs layers, on a program without.
        OutOfMemoryError: a program that does not fit in memory, unless `force`.
    """
    from ckptcli.profiling.memory_needed import check_fits

    for one in passes:
        check_layers([one.strategy], one.workload)
        if not force:
            check_fits(one.workload, [one.strategy], one.backend)


def _run(
    one: _Pass, level: Level, explain: bool, sinks: Sequence[Sink]
) -> tuple[list[str], dict[str, list[float | None]], tuple[str, ...]]:
    """Lines, gradients and warnings of one pass; the configuration's other sinks get the lines."""
    from ckptcli.profiling.log_pass import log_pass

    recorder = Recorder()
    try:
        logged = log_pass(one.workload, one.strategy, Fanout(recorder, *sinks), one.backend)
    except EngineError as error:
        raise type(error)(f"{one.workload.title}: {error.message}", error.hint) from error
    lines = (
        list(explained_log(recorder.events, one.strategy.name, level, one.strategy.follows_marks))
        if explain
        else _burn_lines(recorder.events, level)
    )
    gradients = {
        name: [value if math.isfinite(value) else None for value in values]
        for name, values in logged.gradients.items()
    }
    return lines, gradients, logged.warnings


def _print(
    one: _Pass, lines: Sequence[str], gradients: dict[str, list[float | None]] | None
) -> None:
    """The lines; with `gradients` one JSON object of all."""
    if gradients is None:
        for line in lines:
            click.echo(line)
    else:
        fields = {"case": one.case, "strategy": one.strategy.name, "log": lines}
        click.echo(json.dumps({**fields, "gradients": gradients}, allow_nan=False))


def _burn_lines(events: list[Event], level: Level) -> list[str]:
    return [line for event in events if (line := burn_line(event, level)) is not None]
