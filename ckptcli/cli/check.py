"""`ckpt check`: proof that a strategy changed nothing, with evidence where it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcli.cli.command import options_command
from ckptcli.cli.standard_streams import reader_may_leave
from ckptcli.cli.streams import warn

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.check import CheckOptions


@options_command("check")
def command(options: CheckOptions, line: Line) -> int:
    """Prove each strategy: gradients, finite differences, recomputed values, effects.

    Gradients and recomputed values must be those of `none` and of the forward pass: bit for bit,
    or on a library that is not deterministic within its spread from run to run.
    Exits with 5, and the evidence, if one is not. A finite difference at a kink, or one that
    rounding drowns, concludes nothing; where all do, --strict makes that exit with 4.
    With --engine the strategies are checked in that library too, beside the same program without a
    checkpoint there, ckpt's own, finite differences of the library's own loss, and theory.
    """
    from ckptcli.cli.devices import limited_threads
    from ckptcli.cli.engines import opened_engines
    from ckptcli.cli.subjects import subject_of

    subject = subject_of(options, line)
    threads, quiet = options.device.threads, options.notes.quiet
    with (
        reader_may_leave(),
        limited_threads(options.device, quiet),
        opened_engines(subject.engine_names, threads) as (engines, notes),
    ):
        warn(notes, quiet)
        return subject.check(options, engines)
