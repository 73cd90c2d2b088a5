"""`ckpt check`: proof that a strategy changed nothing, with evidence where it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcli.cli.command import options_command
from ckptcli.cli.standard_streams import reader_may_leave
from ckptcli.cli.streams import warn
from ckptcli.exit_codes import DONE, FAILED, UNTRUSTWORTHY, WRONG

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.measure.check import Check, CheckedProgram
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
    from ckptcli.options.effects import without_effect

    subject = subject_of(options, line)
    threads, quiet = options.device.threads, options.notes.quiet
    with (
        reader_may_leave(),
        limited_threads(options.device, quiet),
        opened_engines(subject.engine_names, threads) as (engines, notes),
    ):
        lost = without_effect(line.options, line.given, subject.kind(options))
        warn([*lost, *notes], quiet)
        checks: list[Check] = []
        for program in subject.checks(options, engines):
            _print(program, options)
            checks += program.checks
    return _exit_code(checks, options.strictness.strict)


def _print(program: CheckedProgram, options: CheckOptions) -> None:
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json_line
        from ckptcli.measure.check import check_object

        print_json_line(check_object(program))
        return
    from ckptcli.cli.text_page import TextPage
    from ckptcli.report.check_lines import HANG, VERDICTS, check_lines

    page = TextPage(options.screen)
    page.print(program.title)
    for check in program.checks:
        page.print(f"{program.name_of(check)}: {page.styled(*VERDICTS[check.passed])}")
        for line in check_lines(check):
            page.print(f"  {line}", hang=HANG)


def _exit_code(checks: Sequence[Check], strict: bool) -> int:
    """5 for what is wrong, 1 for what fails, 4 under --strict for what decides nothing."""
    if any(check.passed is False for check in checks):
        return WRONG
    if any(check.failed for check in checks):
        return FAILED
    is_decided = all(check.is_decided for check in checks)
    return DONE if is_decided or not strict else UNTRUSTWORTHY
