"""`ckpt log`: one untimed pass; Burn's log lines on stdout, nothing else."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.streams import warn
from ckptcli.errors import EngineError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.cli.line import Line
    from ckptcli.config import LoggerSettings
    from ckptcli.events import Event, Level, Sink
    from ckptcli.measure.sort_cost import SortCost
    from ckptcli.options.commands.log import LogOptions
    from ckptcli.workloads.base import Workload

TODAY = "today"
"""The sort of the Burn that is reproduced."""

OURS = "# "
"""What lines begin with that Burn does not have."""


@options_command("log")
def command(options: LogOptions, line: Line) -> None:
    """Print which values one backward pass retrieves, and which nodes are computed again.

    The lines are Burn's, in Burn's order, with Burn's node ids. Those of several strategies
    or values have the device with its strategy above them.
    """
    from ckptcli.cli.devices import limited_threads

    if options.diff and options.sort != TODAY:
        raise UsageError("--diff prints no log, so --sort has none to count", "use one of the two")
    level = _level(options.level_name, line.found.settings)
    with limited_threads(options.device, options.notes.quiet):
        passes = _passes(options, line)
        if options.diff:
            _print_diffs(passes, options)
            return
        _print_logs(passes, options, line.found.settings, level)


def _passes(options: LogOptions, line: Line) -> list[_Pass]:
    """What is run, every program under every strategy; refuses what cannot run before it prints."""
    from ckptcli.cli.programs import kind_of_workload, opened_programs
    from ckptcli.cli.strategy_choice import parse_strategies
    from ckptcli.options.effects import without_effect

    strategies = parse_strategies(options.diff or options.strategies.strategy_texts)
    kind = kind_of_workload(options.program.workload_text)
    lost = without_effect(line.options, line.given, kind)
    programs = opened_programs(options, line)
    passes = [
        _Pass(getattr(workload, "index", 0), point, workload, strategy, programs.backend)
        for point, workload in programs.each()
        for strategy in strategies or [_own_strategy(workload)]
    ]
    for one in passes:
        programs.check_one(one.workload, [one.strategy])
    warn(lost, options.notes.quiet)
    return passes


def _print_logs(
    passes: list[_Pass], options: LogOptions, settings: LoggerSettings, level: Level
) -> None:
    from ckptcli.cli.logger import open_log_sink
    from ckptcli.cli.programs import drained

    is_one = len({one.case for one in passes}) == 1
    has_headings = len(options.strategies.strategy_texts) > 1 or any(one.point for one in passes)
    with ExitStack() as stack:  # one sink for all passes: without `append` it empties its file
        elsewhere = open_log_sink(replace(settings, stdout=False), sys.stderr, level)
        sinks = [stack.enter_context(sink) for sink in elsewhere]
        for one in drained(passes):
            heading = _heading(one) if has_headings else ""
            for sink in sinks:
                sink.begin(heading)
            logged = _run(one, level, options.explain, sinks)
            where = "" if is_one else f"case {one.case}: "
            warn([where + note for note in logged.notes], options.notes.quiet)
            if heading and not options.data.as_json:
                click.echo(heading)
            _print(one, logged, options)


def _heading(one: _Pass) -> str:
    from ckptcli.profiling.log_pass import heading

    return heading(one.workload, one.strategy, one.backend)


def _print_diffs(passes: Sequence[_Pass], options: LogOptions) -> None:
    """Of each program the first strategy's pass beside the second's."""
    from ckptcli.cli.text_page import TextPage
    from ckptcli.events import Recorder
    from ckptcli.profiling.log_pass import log_pass
    from ckptcli.report.log_diff import log_diff

    page = TextPage(options.screen)
    for first, second in zip(passes[::2], passes[1::2]):
        if first.point:
            page.print(first.workload.title)
        recorders = Recorder(), Recorder()
        for one, recorder in zip((first, second), recorders):
            log_pass(one.workload, one.strategy, recorder, one.backend)
        names = first.strategy.name, second.strategy.name
        for line in log_diff(names, recorders[0].events, recorders[1].events):
            page.print(line)


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass to run.

    Attributes:
        case: the index in the graph file, 0 for another workload.
        point: the value here of each option that has several.
    """

    case: int
    point: Mapping[str, float]
    workload: Workload
    strategy: Strategy
    backend: Backend


@dataclass(frozen=True, slots=True)
class _Logged:
    """What a pass gave: its events, and what is printed of them."""

    events: Sequence[Event]
    lines: Sequence[str]
    gradients: dict[str, list[float | None]]
    notes: Sequence[str]


def _level(name: str | None, settings: LoggerSettings) -> Level:
    """The flag's level, else the file's where it is enabled, else full."""
    from ckptcli.events import Level

    levels = {"basic": Level.BASIC, "medium": Level.MEDIUM, "full": Level.FULL}
    if name is None:
        return settings.level or Level.FULL
    if name not in levels:
        raise UnknownNameError("level", name, levels)
    return levels[name]


def _own_strategy(workload: Workload) -> Strategy:
    from ckptcli.cli.strategy_choice import parse_strategies

    return parse_strategies([getattr(workload, "strategy", None) or "balanced"])[0]


def _run(one: _Pass, level: Level, explain: bool, sinks: Sequence[Sink]) -> _Logged:
    """One pass; the configuration's other sinks get the lines."""
    from ckptcli.events import Fanout, Recorder
    from ckptcli.profiling.log_pass import log_pass
    from ckptcli.report.explained_log import explained_log

    recorder = Recorder()
    try:
        logged = log_pass(one.workload, one.strategy, Fanout(recorder, *sinks), one.backend)
    except EngineError as error:
        raise type(error)(f"{one.workload.title}: {error.message}", error.hint) from error
    strategy = one.strategy
    explained = explained_log(
        recorder.events, strategy.name, level, strategy.follows_marks, logged.reasons
    )
    lines = list(explained) if explain else _burn_lines(recorder.events, level)
    gradients = {
        name: [value if math.isfinite(value) else None for value in values]
        for name, values in logged.gradients.items()
    }
    return _Logged(recorder.events, lines, gradients, logged.warnings)


def _print(one: _Pass, logged: _Logged, options: LogOptions) -> None:
    """The lines, Burn's as they are; or one JSON object of all."""
    from ckptcli.report.sort_line import sort_line, sort_object

    counted = options.sort != TODAY
    cost = _old_sort_cost(logged) if counted else None
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json_line

        fields = {
            "case": one.case,
            **({"point": dict(one.point)} if one.point else {}),
            "strategy": one.strategy.name,
            "log": logged.lines,
        }
        sort = {"sort": sort_object(cost)} if counted else {}
        print_json_line({**fields, **sort, "gradients": logged.gradients})
        return
    from ckptcli.cli.text_page import TextPage

    page = TextPage(options.screen)
    for line in [*logged.lines, *([OURS + sort_line(cost)] if counted else [])]:
        if line.startswith(OURS):
            page.print(page.styled(line, "cyan"), hang=len(OURS) + 2, begin=OURS)
        else:
            click.echo(line)


def _old_sort_cost(logged: _Logged) -> SortCost | None:
    from ckptcli.profiling.old_sort import old_sort_cost

    return old_sort_cost(logged.events)


def _burn_lines(events: list[Event], level: Level) -> list[str]:
    from ckptcli.report.log import burn_line

    return [line for event in events if (line := burn_line(event, level)) is not None]
