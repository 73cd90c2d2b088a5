"""`ckpt sweep`: many points, each measured as `ckpt run` measures one, and kept as it comes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.standard_streams import reader_may_leave
from ckptcli.cli.streams import Progress, note, warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import DONE, FAILED, FAILED_CONDITION, UNTRUSTWORTHY, WRONG

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.stops import Stops
    from ckptcli.cli.sweep_tasks import SweepPlan
    from ckptcli.measure.conditions import Condition
    from ckptcli.options.commands.sweep import SweepOptions
    from ckptcli.options.sweeping import ResultOptions
    from ckptcli.report.swept import Swept
    from ckptcli.sweep.engines.base import Engine
    from ckptcli.sweep.result import SweepResult
    from ckptcli.sweep.store import Store

WORST_FIRST = (WRONG, FAILED, FAILED_CONDITION, UNTRUSTWORTHY, DONE)


@options_command("sweep")
def command(options: SweepOptions, line: Line) -> int:
    """Profile many points: sizes, dtypes, libraries, each under each strategy.

    Every number of `ckpt run` may be a list, and the points are their combinations. Each is
    measured in a process of its own and kept in the folder of --out, where an interrupted sweep
    goes on.

    \b
    ckpt sweep -n 64..1024:x2 -l 4,8 --out sweep          resumes where it was interrupted
    ckpt sweep -n 64..512:+64 --memory-only               memory alone, one point a core
    ckpt sweep --grid configs/seed-burn-sizes.toml        a grid under version control
    """
    from ckptcli.cli.stops import Stops
    from ckptcli.cli.sweep_tasks import sweep_plan, with_grid
    from ckptcli.measure.conditions import parse_condition

    options = with_grid(options, line)
    gates = [parse_condition(text) for text in options.gates.conditions]
    plan = sweep_plan(options)
    with reader_may_leave(), store_of(options.results) as store, Stops(None) as stops:
        return _swept(options, plan, store, gates, stops)
    return stops.exit_code


@contextmanager
def store_of(options: ResultOptions) -> Iterator[Store]:
    """The folder of --out or the file of --store; without either what is gone afterwards.

    Raises:
        UsageError: both, or a --retry of neither.
        MissingLibraryError: the library that a file needs is not installed.
    """
    from ckptcli.sweep.store import Folder

    folder, file = options.out_path, options.store_path
    if folder is not None and file is not None:
        raise UsageError("--out and --store both say where points are kept", "give one")
    if file is not None:
        from ckptcli.sweep.database import Database

        with closing(Database(Path(file))) as database:
            yield database
    elif folder is not None:
        yield Folder(Path(folder))
    elif options.retry:
        raise UsageError("--retry has no effect without --out", "name the folder of the sweep")
    else:
        with tempfile.TemporaryDirectory(prefix="ckpt-sweep-") as temporary:
            yield Folder(Path(temporary))


def _swept(
    options: SweepOptions,
    plan: SweepPlan,
    store: Store,
    gates: Sequence[Condition],
    stops: Stops,
) -> int:
    from ckptcli.cli.exports import Exports
    from ckptcli.report.sweep_files import sweep_exporter_for
    from ckptcli.report.swept import Swept
    from ckptcli.sweep.laws.of_sweep import laws_of
    from ckptcli.sweep.result import SweepResult

    with Exports(options.export, options.data, sweep_exporter_for) as exports:
        try:
            _measure(options, plan, store)
        except KeyboardInterrupt:
            if not stops.exit_code:
                raise
        stops.measured()
        sweep = SweepResult(plan.title, plan.axes, list(store.results(plan.tasks)))
        swept = Swept(sweep, laws_of(sweep, options.machines.allow_different_machines))
        exports.write(swept)
        if exports.to_stdout is not None:
            exports.print(swept)
        else:
            _print(options, swept)
        _tell(options, sweep)
        exports.check()
        return stops.exit_code or _exit_code(sweep, gates, options.strictness.strict)


def _measure(options: SweepOptions, plan: SweepPlan, store: Store) -> None:
    """Whatever is not in the folder yet."""
    from ckptcli.sweep.running import run_tasks, to_measure

    tasks = to_measure(plan.tasks, store, options.results.retry)
    kept = len(plan.tasks) - len(tasks)
    if kept:
        note(f"{kept} of {len(plan.tasks)} points are there already", options.notes.quiet)
    engine = _engine(options)
    progress = Progress(options.notes.quiet)

    def tell(done: int, most: int, text: str) -> None:
        progress.estimate(text)
        progress.tell("points", done, most)

    try:
        run_tasks(tasks, store, engine, tell)
    finally:
        progress.end()


def _engine(options: SweepOptions) -> Engine:
    """What measures the points.

    Raises:
        UsageError: an option that another engine has.
        MissingLibraryError: the library of the engine is not installed.
    """
    from ckptcli.sweep.engines import engine_class
    from ckptcli.sweep.engines.base import Request

    place, of = options.place.engine_place, options.scheduler
    for flag, value, owner in (
        ("--scheduler", of.scheduler, "dask"),
        ("--slurm", of.slurm_texts, "slurm"),
    ):
        if value and place != owner:
            raise UsageError(f"{flag} has no effect on --on {place}", f"add --on {owner}")
    path = options.results.out_path
    request = Request(
        options.rounds.memory_only or options.shapes.is_fake,
        options.rounds.timeout_s,
        of.scheduler,
        None if path is None else Path(path),
        dict(map(_parameter, of.slurm_texts)),
    )
    return engine_class(place)(request)


def _parameter(text: str) -> tuple[str, str]:
    """The name and the value of `partition=gpu`."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--slurm `{text}` is no parameter", "give NAME=VALUE, partition=gpu")
    return name, value


def _print(options: SweepOptions, swept: Swept) -> None:
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json
        from ckptcli.sweep.sweep_json import sweep_object

        print_json(sweep_object(swept.sweep, swept.laws))
        return
    from ckptcli.cli.screens import open_screen
    from ckptcli.report.sweep_console import render_sweep

    screen = open_screen(options.screen)
    text = render_sweep(swept.sweep, swept.laws, screen, quiet=options.notes.quiet)
    click.echo(text, nl=False, color=True)


def _tell(options: SweepOptions, sweep: SweepResult) -> None:
    """What the points themselves warn of, once, and what another version measured."""
    from ckptcli.sweep.running import once, stale

    warn(stale(sweep.points), options.notes.quiet)
    warn(once(sweep.points), options.notes.quiet)


def _exit_code(sweep: SweepResult, gates: Sequence[Condition], strict: bool) -> int:
    """The worst of what the points would end with, each as a run of its own."""
    from ckptcli.cli.runs import exit_code_of

    codes = {FAILED if point.status == "failed" else DONE for point in sweep.points}
    for record in filter(None, (point.placed() for point in sweep.points)):
        failed = FAILED if record.failures else DONE
        codes.add(exit_code_of(record, gates, strict, failed))
    return next(code for code in WORST_FIRST if code in codes)
