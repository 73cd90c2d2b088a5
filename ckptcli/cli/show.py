"""`ckpt show`: the screens of a saved run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError
from ckptcli.visible import visible

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.measure.record import RunRecord
    from ckptcli.measure.row import Row
    from ckptcli.options.commands.show import ShowOptions
    from ckptcli.report.screen import Screen


@options_command("show", click.Argument(["name"], metavar="FILE", type=click.Path()))
def command(options: ShowOptions, line: Line, name: str) -> None:
    """Show a saved run as `ckpt run` printed it, or other views of it.

    --stats, --hist and --timeline show what they name instead, and can be combined. A FILE `-` is
    stdin.
    """
    from ckptcli.cli.records import read_record_file

    chosen = {"stats": options.stats, "hist": options.hist, "timeline": options.timeline}
    views = [view for view, is_chosen in chosen.items() if is_chosen]
    if options.data.as_json and views:
        raise UsageError(f"--json prints the whole record, --{views[0]} a screen", "give one")
    from ckptcli.cli.exports import Exports
    from ckptcli.report.formats import exporter_for

    record = read_record_file(name)
    with Exports(options.export, options.data, exporter_for) as exports:
        exports.write(record)
        exports.check()
        if exports.to_stdout is not None:
            exports.print(record)
            return
    _print(options, record, views)


def _print(options: ShowOptions, record: RunRecord, views: Sequence[str]) -> None:
    """The JSON object, or the screens."""
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json
        from ckptcli.measure.record_json import record_object

        print_json(record_object(record))
        return
    from ckptcli.cli.screens import open_screen

    screen = open_screen(options.screen)
    texts = [text for view in views for text in _VIEWS[view](record, screen)]
    if not views:
        from ckptcli.report.console import render_run

        texts = [
            render_run(record, screen, verbose=options.details.verbose, quiet=options.notes.quiet)
        ]
    click.echo("\n".join(texts), nl=False, color=True)
    if not views:
        warn(record.warnings, options.notes.quiet)


def _statistics(record: RunRecord, screen: Screen) -> Iterator[str]:
    from ckptcli.measure.row import PHASES
    from ckptcli.measure.statistics import describe
    from ckptcli.report.distribution import statistics_table

    for strategy in _timed(record):
        phases = {p: describe(known) for p in PHASES if (known := strategy.seconds(p))}
        yield screen.render(statistics_table(record.label(strategy), phases, screen))


def _histogram(record: RunRecord, screen: Screen) -> Iterator[str]:
    from ckptcli.measure.histogram import histogram
    from ckptcli.report.distribution import histogram_text

    _timed(record)
    for part in record.parts:
        rows = [row for row in part.rows if row.samples]
        groups = {visible(part.label(row)): row.seconds("total") for row in rows}
        if groups:
            title = f"{visible(part.title)}\n" if record.programs else ""
            yield title + histogram_text(histogram(groups), screen.width, screen.unicode)


def _timeline(record: RunRecord, screen: Screen) -> Iterator[str]:
    from ckptcli.report.console import render_pictures
    from ckptcli.report.formats import no_pass

    pictures = render_pictures(record, screen)
    if not pictures.strip():
        raise no_pass("--timeline")
    yield pictures


_VIEWS = {"stats": _statistics, "hist": _histogram, "timeline": _timeline}


def _timed(record: RunRecord) -> list[Row]:
    """The strategies with samples.

    Raises:
        UsageError: there are none.
    """
    timed = [strategy for strategy in record.rows if strategy.samples]
    if not timed:
        raise UsageError("the record has no complete round", "show it without --stats and --hist")
    return timed
