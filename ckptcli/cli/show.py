"""`ckpt show`: the screens of a saved run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.records import read_record_file, screen_from_options, screen_options
from ckptcli.cli.settings import SettingsCommand
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.measure.record import RunRecord
    from ckptcli.measure.row import Row
    from ckptcli.report.screen import Screen

VIEWS = ("stats", "hist", "timeline")


@click.command("show", cls=SettingsCommand)
@click.argument("name", metavar="FILE", type=click.Path())
@click.option("--stats", is_flag=True, help="Statistics of the times, a table a strategy.")
@click.option("--hist", is_flag=True, help="Histogram of the total times, on common bins.")
@click.option("--timeline", is_flag=True, help="Live bytes over the pass, and what sets the peak.")
@click.option("--json", "as_json", is_flag=True, help="Print the record, schema ckpt.run/1.")
@screen_options
@click.option("-v", "--verbose", is_flag=True, help="List what was live at the peak.")
@click.pass_context
def command(ctx: click.Context, /, name: str, as_json: bool, **_: Any) -> None:
    """Show a saved run as `ckpt run` printed it, or other views of it.

    --stats, --hist and --timeline show what they name instead, and can be combined. A FILE `-` is
    stdin.
    """
    views = [view for view in VIEWS if ctx.params[view]]
    if as_json and views:
        raise UsageError(f"--json prints the whole record, --{views[0]} a screen", "give one")
    record = read_record_file(name)
    if as_json:
        from ckptcli.measure.record_json import record_json

        click.echo(record_json(record), nl=False)
        return
    screen = screen_from_options(ctx.params)
    texts = [text for view in views for text in _VIEWS[view](record, screen)]
    if not views:
        from ckptcli.report.console import render_run

        texts = [render_run(record, screen, verbose=ctx.params["verbose"])]
    click.echo("\n".join(texts), nl=False, color=True)


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

    groups = {record.label(strategy): strategy.seconds("total") for strategy in _timed(record)}
    yield histogram_text(histogram(groups), screen.width, screen.unicode)


def _timeline(record: RunRecord, screen: Screen) -> Iterator[str]:
    from ckptcli.report.timeline_text import peak_bars, timeline_text

    for draw in (timeline_text, peak_bars):
        text = draw(record, screen.width, screen.unicode)
        yield f"{text}\n" if text else ""


_VIEWS = {"stats": _statistics, "hist": _histogram, "timeline": _timeline}


def _timed(record: RunRecord) -> list[Row]:
    timed = [row for row in record.rows if row.samples]
    if not timed:
        raise UsageError("the record has no complete round", "show it without --stats and --hist")
    return timed
