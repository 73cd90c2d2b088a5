"""How `ckpt run` carries out an experiment: a workload without strategies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ckptcli.cli.devices import open_device
from ckptcli.cli.exit_codes import WRONG
from ckptcli.cli.options import has_no_effect
from ckptcli.cli.stops import Stops
from ckptcli.cli.streams import Progress, has_glyphs, screen_width, use_color, warn
from ckptcli.errors import UsageError
from ckptcli.workloads.options import WorkloadOptions, option_texts

if TYPE_CHECKING:
    from ckptcli.measure.experiment_record import ExperimentRecord
    from ckptcli.workloads.experiment import Experiment

USED = {
    *("workload_text", "config_path", "backend_name", "device_name", "threads"),
    *("as_json", "color", "width", "timeout_s", "force", "quiet"),
}
"""The options of `ckpt run` that an experiment looks at, beside its own."""

REFUSED = ("export_paths", "format_name", "conditions", "strict")
"""Those whose loss would not be noticed."""


def experiment_of(params: dict[str, Any]) -> Experiment | None:
    """The experiment that the options stand for; None where they stand for a workload."""
    from ckptcli.workloads.registry import open_experiment

    options = WorkloadOptions(**{name: params[name] for name in option_texts()})
    return open_experiment(params["workload_text"], options)


def run_experiment(ctx: click.Context, experiment: Experiment, stops: Stops) -> int:
    """Carry it out, print it; returns the exit code.

    Raises:
        UsageError: an option that makes no sense with it.
        CkptError: it failed; what was complete is printed.
    """
    from ckptcli.profiling.experiment import carried_out, check_experiment_fits

    params = ctx.params
    notes = _checked_options(ctx)
    backend = open_device(params)
    if not params["force"]:
        check_experiment_fits(experiment)
    progress = Progress(params["quiet"])

    def tell(done: int, most: int) -> None:
        stops.check()
        progress.tell("rounds", done, most)

    try:
        record, failure = carried_out(experiment, backend, tell)
    finally:
        progress.end()
    _print(params, record)
    warn(notes, params["quiet"])
    if failure is not None:
        raise failure
    return (WRONG if record.wrong else 0) or stops.exit_code


def _checked_options(ctx: click.Context) -> list[str]:
    """Warnings about options without effect."""
    from ckptcli.workloads.registry import options_without_effect

    workload, unused = options_without_effect(ctx.params["workload_text"])
    notes = []
    for option in ctx.command.params:
        name = option.name or ""
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        flag = max(option.opts, key=len)
        if name in REFUSED:
            raise UsageError(
                f"{flag} is for profiles, and workload `{workload}` is an experiment",
                "use --json for its result as data",
            )
        if name in unused or (name not in USED and name not in option_texts()):
            notes.append(has_no_effect(flag, workload))
    return notes


def _print(params: dict[str, Any], record: ExperimentRecord) -> None:
    if params["as_json"]:
        from ckptcli.measure.experiment_record import experiment_json

        click.echo(experiment_json(record), nl=False)
        return
    from ckptcli.report.experiment_console import render_experiment
    from ckptcli.report.screen import Screen

    screen = Screen(
        params["width"] or screen_width(sys.stdout),
        use_color(params["color"], sys.stdout),
        has_glyphs(sys.stdout),
    )
    click.echo(render_experiment(record, screen), nl=False, color=True)
