"""`ckpt saved`: what is held after the forward pass, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcli.cli.command import options_command
from ckptcli.cli.streams import warn

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.saved import SavedOptions


@options_command("saved")
def command(options: SavedOptions, line: Line) -> None:
    """List what each strategy holds after forward: node, op, bytes, line, consumers, end.

    Each storage counts once; parameters, input and the loss are left out.
    """
    from ckptcli.cli.devices import limited_threads
    from ckptcli.cli.engines import opened_engines
    from ckptcli.cli.subjects import subject_of

    subject = subject_of(options, line)
    threads, quiet = options.device.threads, options.notes.quiet
    with (
        limited_threads(options.device, quiet),
        opened_engines(subject.engine_names, threads) as (engines, notes),
    ):
        warn(notes, quiet)
        subject.saved(options, engines)
