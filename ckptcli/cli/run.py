"""`ckpt run`: the main job. Profiles a workload under each strategy and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcli.cli.command import options_command
from ckptcli.cli.standard_streams import reader_may_leave

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.run import RunOptions


@options_command("run")
def command(options: RunOptions, line: Line) -> int:
    """Profile a workload: memory held and peak, recomputation, time, for each strategy.

    Memory comes from an exact account of one pass, time from interleaved rounds of others.

    \b
    ckpt run -n 64                               a silu network, none against balanced
    ckpt run -s remat -s sqrt --layers 16        other strategies, each against none
    ckpt run --workload mine.py:make --json      a program of your own, as data
    """
    from ckptcli.cli.runs import run_subject
    from ckptcli.cli.subjects import subject_of

    with reader_may_leave():
        return run_subject(subject_of(options, line), options, line)
