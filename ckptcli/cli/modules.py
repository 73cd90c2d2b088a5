"""`--module FILE.py:MAKE`: a PyTorch module of the user's own: what it holds, and its checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ckptcli.cli.devices import limited_threads
from ckptcli.cli.engines import opened_engines
from ckptcli.cli.json_output import print_json_line
from ckptcli.cli.screens import open_screen
from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import DONE, FAILED, UNTRUSTWORTHY, WRONG
from ckptcli.options.commands.saved import SavedOptions
from ckptcli.options.effects import Subject, without_effect
from ckptcli.options.program import PeerOptions
from ckptcli.options.subjects import MODULE

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.check import CheckOptions

ENGINE = "torch"
SUBJECT = Subject(MODULE, "a module")


def saved_module(options: SavedOptions, line: Line) -> None:
    """`ckpt saved --engine torch --module FILE.py:MAKE`."""
    text, quiet = options.peers.module_text, options.notes.quiet
    assert text is not None
    warn(checked_module(options.peers, line), quiet)
    with (
        limited_threads(options.device, quiet),
        opened_engines((ENGINE,), options.device.threads) as (engines, told),
    ):
        from ckptcli.measure.module_saved import saved_object
        from ckptcli.profiling.module_saved import HeldByModule
        from ckptcli.report.module_saved_console import render_module_saved

        warn(told, quiet)
        names = options.strategies.strategy_texts
        wanted = options.blocks.blocks_text
        found = HeldByModule(text, options.workload.seed, engines[0], names, wanted)
    warn(found.notes, quiet)
    by, depth = options.totals.by_text, options.totals.depth
    if options.data.as_json:
        print_json_line(saved_object(found.title, found.held, depth))
        return
    screen = open_screen(options.screen)
    click.echo(screen.render(found.title), nl=False, color=True)
    for name, held in found.held.items():
        click.echo(render_module_saved(name, held, by, depth, screen), nl=False, color=True)


def check_module(options: CheckOptions, line: Line) -> int:
    """`ckpt check --module FILE.py:MAKE`; the exit code."""
    text, quiet = options.peers.module_text, options.notes.quiet
    assert text is not None
    warn(checked_module(options.peers, line, implied=True), quiet)
    with (
        limited_threads(options.device, quiet),
        opened_engines((ENGINE,), options.device.threads) as (engines, told),
    ):
        from ckptcli.cli.module_checks import print_checks
        from ckptcli.profiling.module_check import CheckedModule

        warn(told, quiet)
        checked = CheckedModule(text, options.workload.seed, engines[0], options.blocks.blocks_text)
        warn(checked.notes, quiet)
        strategies = checked.strategies(options.strategies.strategy_texts)
        checks = list(checked.checks(strategies))
    print_checks(checked.title, checks, options)
    if any(found.passed is False for found in checks):
        return WRONG
    if any(found.failed for found in checks):
        return FAILED
    undecided = [found for found in checks if found.passed is None]
    return UNTRUSTWORTHY if options.strictness.strict and undecided else DONE


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


def checked_module(options: PeerOptions, line: Line, implied: bool = False) -> list[str]:
    """Warnings about options without effect; `implied` is whether PyTorch need not be named.

    Raises:
        UsageError: another engine than PyTorch, or an option that a module cannot have.
    """
    names = options.engine_names or ((ENGINE,) if implied else ())
    if names != (ENGINE,):
        raise UsageError(
            f"--module {options.module_text} needs --engine torch alone", "add `--engine torch`"
        )
    return without_effect(line.options, line.given, SUBJECT)
