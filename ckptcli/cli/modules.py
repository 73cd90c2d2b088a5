"""`--module FILE.py:MAKE`: a PyTorch module of the user's own in `ckpt run` and `ckpt saved`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.devices import limited_threads
from ckptcli.cli.engines import opened_engines
from ckptcli.cli.json_output import print_json_line
from ckptcli.cli.screens import open_screen
from ckptcli.cli.stops import Stops
from ckptcli.cli.strategy_choice import parse_strategies
from ckptcli.cli.streams import Progress, warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import FAILED, WRONG
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.commands.saved import SavedOptions
from ckptcli.options.effects import Subject, without_effect
from ckptcli.options.program import PeerOptions
from ckptcli.options.subjects import MODULE

if TYPE_CHECKING:
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.cli.line import Line
    from ckptcli.measure.module_record import ModuleRecord

ENGINE = "torch"
DEFAULT = ("none", "remat")
SUBJECT = Subject(MODULE, "a module")


def run_module(options: RunOptions, line: Line) -> int:
    """`ckpt run --engine torch --module FILE.py:MAKE`."""
    notes = _checked(options.peers, line)
    strategies = _strategies(options.strategies.strategy_texts)
    quiet = options.notes.quiet
    with limited_threads(options.device, quiet):
        profiling = importlib.import_module("ckptcli.profiling.module_profile")
        with opened_engines((ENGINE,), options.device.threads) as ((engine,), _):
            importlib.import_module("ckptcli.peers.torch_module")
            with Stops(options.rounds.timeout_s) as stops:
                record = _profiled(profiling, strategies, engine, options, stops)
                warn([*notes, *record.warnings], quiet)
                _print_profile(record, options)
                return _tell_failures(record) or stops.exit_code
    return stops.exit_code


def _strategies(texts: Sequence[str]) -> list[Strategy]:
    """`none` first, which the others are compared with, whether it was named or not.

    Raises:
        UnknownNameError, UsageError: as `parse_strategies`.
    """
    named = parse_strategies(texts or DEFAULT)
    others = [strategy for strategy in named if strategy.name != DEFAULT[0]]
    return [*parse_strategies(DEFAULT[:1]), *others]


def _tell_failures(record: ModuleRecord) -> int:
    """5 for a wrong value, 1 for a strategy under which the module failed, which stderr names."""
    reasons = {row.strategy: row.reason for row in record.rows}
    for name in record.failed:
        click.echo(f"Error: {name}: {reasons[name]}", err=True)
    if any(judgement.word == "wrong" for judgement in record.judgements.values()):
        return WRONG
    return FAILED if record.failed else 0


def _profiled(
    profiling: Any,
    strategies: Sequence[Strategy],
    engine: Any,
    options: RunOptions,
    stops: Stops,
) -> Any:
    from ckptcli.measure.rounds import Plan

    progress = Progress(options.notes.quiet)

    def tell(phase: str, done: int, most: int) -> None:
        stops.check()
        progress.tell(phase, done, most)

    rounds = options.rounds
    plan = Plan(rounds.reps, rounds.warmup, rounds.max_time_s, options.workload.seed)
    try:
        return profiling.profile_module(
            options.peers.module_text,
            strategies,
            engine,
            plan,
            options.threshold.threshold_percent / 100.0,
            tell,
        )
    finally:
        progress.end()


def saved_module(options: SavedOptions, line: Line) -> None:
    """`ckpt saved --engine torch --module FILE.py:MAKE`."""
    text, seed = options.peers.module_text, options.workload.seed
    assert text is not None
    warn(_checked(options.peers, line), options.notes.quiet)
    with (
        limited_threads(options.device, options.notes.quiet),
        opened_engines((ENGINE,), options.device.threads),
    ):
        from ckptcli.measure.module_record import saved_object
        from ckptcli.peers.torch_module import load_module
        from ckptcli.peers.torch_saved import saved_by_module
        from ckptcli.report.module_console import render_module_saved

        user = load_module(text, seed)
        saved = saved_by_module(user, seed)
    if options.data.as_json:
        print_json_line(saved_object(user.title, saved))
    else:
        shown = render_module_saved(user.title, saved, open_screen(options.screen))
        click.echo(shown, nl=False, color=True)


def _print_profile(record: Any, options: RunOptions) -> None:
    from ckptcli.measure.module_record import module_json
    from ckptcli.report.module_console import render_module

    if options.data.as_json:
        click.echo(module_json(record), nl=False)
    else:
        click.echo(render_module(record, open_screen(options.screen)), nl=False, color=True)


def check_engine(names: Sequence[str]) -> None:
    """Refuse an engine without a module where only modules have one.

    Raises:
        UsageError: an engine is named.
    """
    if names:
        raise UsageError(
            f"--engine {names[0]} needs --module here",
            "`ckpt run --engine` compares the silu network",
        )


def _checked(options: PeerOptions, line: Line) -> list[str]:
    """Warnings about options without effect.

    Raises:
        UsageError: another engine than PyTorch, or an option that a module cannot have.
    """
    if options.engine_names != (ENGINE,):
        raise UsageError(
            f"--module {options.module_text} needs --engine torch alone", "add `--engine torch`"
        )
    return without_effect(line.options, line.given, SUBJECT)
