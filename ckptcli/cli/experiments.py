"""How `ckpt run` carries out an experiment: a workload without strategies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ckptcli.cli.devices import open_device
from ckptcli.cli.programs import kind_of_workload
from ckptcli.cli.screens import open_screen
from ckptcli.cli.stops import Stops
from ckptcli.cli.streams import Progress, warn
from ckptcli.exit_codes import WRONG
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.effects import takes, without_effect

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.measure.experiment_record import ExperimentRecord
    from ckptcli.workloads.experiment import Experiment


def experiment_of(options: RunOptions) -> Experiment | None:
    """The experiment that the options stand for; None where they stand for a workload."""
    from ckptcli.workloads.registry import open_experiment

    return open_experiment(options.program.workload_text, options.workload)


def run_experiment(options: RunOptions, line: Line, experiment: Experiment, stops: Stops) -> int:
    """Carry it out, print it; returns the exit code.

    Raises:
        UsageError: an option that makes no sense with it.
        CkptError: it failed; what was complete is printed.
    """
    from ckptcli.profiling.experiment import carried_out, check_experiment_fits

    quiet = options.notes.quiet
    notes = _without_effect(options, line, experiment)
    backend = open_device(options.device, options.workload.dtype, quiet)
    if not options.memory.no_memory_check:
        check_experiment_fits(experiment)
    progress = Progress(quiet)

    def tell(done: int, most: int) -> None:
        stops.check()
        progress.tell("rounds", done, most)

    try:
        record, failure = carried_out(experiment, backend, tell)
    finally:
        progress.end()
    stops.measured()
    _print(options, record)
    warn(notes, quiet)
    if failure is not None:
        raise failure
    return (WRONG if record.wrong else 0) or stops.exit_code


def _without_effect(options: RunOptions, line: Line, experiment: Experiment) -> list[str]:
    """Warnings about options that the workload takes, and this experiment of it does not."""
    kind = kind_of_workload(options.program.workload_text)
    title = f"{kind.title} with {experiment.variant}"
    narrowed = replace(kind, title=title, uses=kind.uses - experiment.unused)
    taken = [option for option in line.options if takes(kind, option)]
    return without_effect(taken, line.given, narrowed)


def _print(options: RunOptions, record: ExperimentRecord) -> None:
    if options.data.as_json:
        from ckptcli.measure.experiment_record import experiment_json

        click.echo(experiment_json(record), nl=False)
        return
    from ckptcli.report.experiment_console import render_experiment

    click.echo(render_experiment(record, open_screen(options.screen)), nl=False, color=True)
