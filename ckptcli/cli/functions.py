"""`--function FILE.py:MAKE`: a JAX function of the user's own, in the commands that take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ckptcli.cli.engines import opened_engines
from ckptcli.cli.json_output import print_json_line
from ckptcli.cli.screens import open_screen
from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import DONE, UNTRUSTWORTHY, WRONG
from ckptcli.options.effects import Subject, without_effect
from ckptcli.options.subjects import FUNCTION

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.check import CheckOptions
    from ckptcli.options.commands.saved import SavedOptions

ENGINE = "jax"
ENGINES = (ENGINE, "jax-eager")
SUBJECT = Subject(FUNCTION, "a function")


def saved_function(options: SavedOptions, line: Line) -> None:
    """`ckpt saved --function FILE.py:MAKE`."""
    from ckptcli.peers.function_strategies import parse_function_strategy

    text = options.function.function_text
    assert text is not None
    names, peers = options.strategies.strategy_texts, options.peers
    strategies = [parse_function_strategy(name) for name in dict.fromkeys(names)]
    engines, notes = checked_function(text, peers.engine_names, peers.module_text, line)
    with opened_engines(engines[:1], options.device.threads) as (_, engine_notes):
        from ckptcli.peers.jax_function_saved import saved_by_strategy

        warn([*notes, *engine_notes], options.notes.quiet)
        saved = saved_by_strategy(text, strategies)
    warn(saved.notes, options.notes.quiet)
    if options.data.as_json:
        from ckptcli.measure.function_saved import saved_object

        print_json_line(saved_object(saved.title, saved.as_it_is, saved.held))
        return
    from ckptcli.report.function_saved_console import render_function_saved

    screen = open_screen(options.screen)
    click.echo(screen.render(saved.title), nl=False, color=True)
    shown = saved.held or {saved.name: saved.as_it_is}
    for name, held in shown.items():
        click.echo(render_function_saved(name, held, screen), nl=False, color=True)


def checked_function(
    text: str, names: Sequence[str], module: str | None, line: Line
) -> tuple[Sequence[str], list[str]]:
    """The engines that are meant, JAX where none is named, and warnings about options.

    Raises:
        UsageError: another engine than JAX's, a module beside it, or an option that a function
            cannot have.
    """
    if module is not None:
        raise UsageError(
            f"--function {text} and --module {module} are two programs", "leave out one"
        )
    engines = tuple(dict.fromkeys(names)) or (ENGINE,)
    wrong = [name for name in engines if name not in ENGINES]
    if wrong:
        raise UsageError(
            f"--function {text} is JAX's, and --engine {wrong[0]} is not",
            f"leave out --engine, or use {' or '.join(ENGINES)}",
        )
    return engines, without_effect(line.options, line.given, SUBJECT)


def check_function(options: CheckOptions, line: Line) -> int:
    """`ckpt check --function FILE.py:MAKE`; the exit code."""
    from ckptcli.peers.function_strategies import parse_function_strategy

    text = options.function.function_text
    assert text is not None
    names = dict.fromkeys(options.strategies.strategy_texts)
    strategies = [parse_function_strategy(name) for name in names]
    engines, notes = checked_function(
        text, options.peers.engine_names, options.peers.module_text, line
    )
    with opened_engines(engines[:1], options.device.threads) as (_, engine_notes):
        from ckptcli.cli.function_checks import print_checks
        from ckptcli.profiling.function_check import CheckedFunction

        warn([*notes, *engine_notes], options.notes.quiet)
        checked = CheckedFunction(text, options.workload.seed)
        warn(checked.notes, options.notes.quiet)
        checks = list(checked.checks(strategies or checked.default()))
    print_checks(checked.title, checks, options)
    if any(found.passed is False for found in checks):
        return WRONG
    undecided = [found for found in checks if not found.usable]
    return UNTRUSTWORTHY if options.strictness.strict and undecided else DONE
