"""`ckpt saved`: what is held after the forward pass, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.measure.saved_list import SavedProgram
    from ckptcli.options.commands.saved import SavedOptions


@options_command("saved")
def command(options: SavedOptions, line: Line) -> None:
    """List what each strategy holds after forward: node, op, bytes, line, consumers, end.

    Each storage counts once; parameters, input and the loss are left out.
    """
    from ckptcli.cli.devices import limited_threads
    from ckptcli.cli.engines import opened_engines
    from ckptcli.cli.subjects import subject_of
    from ckptcli.options.effects import without_effect

    subject = subject_of(options, line)
    _check_sums(options.totals.by_text, subject.sums)
    threads, quiet = options.device.threads, options.notes.quiet
    with (
        limited_threads(options.device, quiet),
        opened_engines(subject.engine_names, threads) as (engines, notes),
    ):
        lost = without_effect(line.options, line.given, subject.kind(options))
        warn([*lost, *notes], quiet)
        for program in subject.saved(options, engines):
            warn(program.notes, quiet)
            _print(program, options)


def _check_sums(by: str | None, sums: Sequence[str]) -> None:
    """Refuse sums that there are not, before anything is opened.

    Raises:
        UsageError: such a sum.
    """
    if by is not None and by not in sums:
        raise UsageError(f"--by {by} is no sum of what is listed here", f"use {', '.join(sums)}")


def _print(program: SavedProgram, options: SavedOptions) -> None:
    by, depth = options.totals.by_text, options.totals.depth
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json_line
        from ckptcli.measure.saved_list import saved_object

        print_json_line(saved_object(program, depth))
        return
    from ckptcli.cli.screens import open_screen
    from ckptcli.report.saved_console import render_saved

    click.echo(render_saved(program, by, depth, open_screen(options.screen)), nl=False, color=True)
