"""`ckpt plan`: what to keep and what to compute again within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.streams import Progress, warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import DONE, FAILED, WRONG

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.subjects.base import PlanAnswer, Subject
    from ckptcli.options.commands.plan import PlanOptions


@options_command("plan")
def command(options: PlanOptions, line: Line) -> int:
    """Plan what to keep and what to compute again, so that memory stays within a budget.

    Of a program, --workload, the budget is bytes above parameters and input, gradients and the
    workspace of kernels included; of --graph FILE it is in the file's unit. Of --module it is what
    a step of training adds to parameters, input and optimizer, and a plan is a set of blocks.
    --device-memory is the same limit on all, these included.

    Every plan is played against the rules of its problem: cost and peak are what that gives. Exits
    with 1 if no plan within the budget was found, and says which budget is enough.
    """
    from ckptcli.cli.plan_files import is_page, plan_files
    from ckptcli.cli.plan_limits import check_limits

    check_limits(options, line)
    with plan_files(options) as files:
        planned = _planned(options, line)
        warn(planned.notes, options.notes.quiet)
        for file in files:
            file.write(planned.page() if is_page(file) else planned.exported())
        _print(planned, options)
    if planned.is_wrong:
        return WRONG
    return DONE if planned.feasible else FAILED


def _planned(options: PlanOptions, line: Line) -> PlanAnswer:
    """The answer, of a problem in a file or of a subject."""
    from ckptcli.cli.subjects import subject_of, words_of

    if options.problem.graph_path is None:
        return _planned_subject(subject_of(options, line), options, line)
    words = words_of(options)
    if words is not None:
        raise UsageError(f"{words} and --graph are two problems", "leave out one")
    from ckptcli.cli.problem_plans import planned_problem

    return planned_problem(options.problem.graph_path, options, line)


def _planned_subject(subject: Subject, options: PlanOptions, line: Line) -> PlanAnswer:
    from ckptcli.cli.devices import limited_threads
    from ckptcli.cli.engines import opened_engines
    from ckptcli.options.effects import without_effect

    threads, quiet = options.device.threads, options.notes.quiet
    progress = Progress(quiet)
    with (
        limited_threads(options.device, quiet),
        opened_engines(subject.engine_names, threads) as (engines, notes),
    ):
        lost = without_effect(line.options, line.given, subject.kind(options))
        warn([*lost, *notes], quiet)
        try:
            return subject.plan(options, engines, progress.tell)
        finally:
            progress.end()


def _print(planned: PlanAnswer, options: PlanOptions) -> None:
    if options.data.as_json:
        click.echo(planned.data(), nl=False)
        return
    from ckptcli.cli.screens import open_screen

    click.echo(planned.render(open_screen(options.screen)), nl=False, color=True)
