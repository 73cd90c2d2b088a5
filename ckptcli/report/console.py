"""A run for the eye: the answers, the table, each strategy's lines, pictures, details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.report import cells, run_table
from ckptcli.report.charts import live_title
from ckptcli.report.compiled_table import compiled_table
from ckptcli.report.gradient_table import gradient_lines, gradient_table
from ckptcli.report.live_bars import live_bars
from ckptcli.report.live_table import live_table
from ckptcli.report.looks import word_style
from ckptcli.report.phase_table import phase_table
from ckptcli.report.progress_lines import row_lines
from ckptcli.report.readings import answer, readings, title, why
from ckptcli.report.screen import Screen
from ckptcli.report.surroundings import (
    heading,
    machine_line,
    origin_line,
    partial_line,
    rounds_line,
)
from ckptcli.report.timeline_text import timeline_text

Part = str | Text | Table

ENOUGH_REPS = 49
"""The most rounds that are made without --reps."""


def render_run(
    record: RunRecord, screen: Screen, *, verbose: bool = False, quiet: bool = False
) -> str:
    """The whole screen, ready to print; `quiet` leaves the answers and the table alone, and
    what is partial marked.
    """
    parts: list[Part] = [
        screen.wrapped(heading(record), style="bold"),
        *(_answer(row, record, screen) for row in record.rows),
        "",
        screen.draw(run_table.table(record)),
        *_gradients(record, screen),
        *_more(compiled_table(record), screen),
        *_more(phase_table(record), screen),
    ]
    if quiet and record.partial:
        parts += ["", screen.wrapped(partial_line(record))]
    if not quiet:
        parts += _details(record, screen, verbose)
    return screen.render(*parts)


def render(record: RunRecord, *, width: int = 120, verbose: bool = False) -> str:
    """The record as `ckpt run` shows it, in plain text; for whoever has it in Python."""
    text = render_run(record, Screen(width), verbose=verbose)
    return "\n".join([text, *(f"warning: {warning}" for warning in record.warnings)])


def render_pictures(record: RunRecord, screen: Screen) -> str:
    """The pictures alone, ready to print."""
    return screen.render(*[*_pictures(record, screen)][1:])


def next_commands(record: RunRecord, *, has_page: bool = False) -> Sequence[str]:
    """What a reader of this screen may want next; commands that run the same workload.

    `has_page` is whether there is a page of the run already.
    """
    again = run_table.command_line(record)
    if again is None:
        return ()
    commands = [] if has_page else [f"{again} --export report.html"]
    if _is_unclear(record):
        longer = run_table.command_line(record, max(ENOUGH_REPS, 2 * record.rounds))
        commands.insert(0, str(longer))
    return commands


def _answer(row: Row, record: RunRecord, screen: Screen) -> Text:
    line = screen.wrapped(f"{record.label(row)}: {answer(row, record)}")
    word = run_table.verdict(row, record)
    start = len(record.label(row)) + 2
    if line.plain[start:].startswith(word):
        line.stylize(word_style(word), start, start + len(word))
    return line


def _gradients(record: RunRecord, screen: Screen) -> list[Part]:
    """What a program with one number to differentiate by is held against."""
    table = gradient_table(record)
    if table is None:
        return []
    lines = [screen.wrapped(line) for line in gradient_lines(record)]
    return ["", *lines, "", screen.draw(table)]


def _more(table: cells.Table | None, screen: Screen) -> list[Part]:
    """A table that not every record has."""
    return [] if table is None else ["", screen.draw(table)]


def _details(record: RunRecord, screen: Screen, verbose: bool) -> Iterator[Part]:
    """Each strategy's lines, the pictures, and what the figures say."""
    yield ""
    for row in record.rows:
        yield from row_lines(row, record, verbose)
    yield from _pictures(record, screen)
    yield ""
    for row in record.rows:
        yield from _reading(row, record, screen)
    if _is_unclear(record):
        after = units.count(record.rounds, "round")
        yield screen.wrapped(f"a time is unclear after {after}: more --reps narrow the interval")
    if verbose:
        for row in filter(_is_known, record.rows):
            yield from _live_table(row, record, screen)
    yield ""
    for line in (rounds_line(record), machine_line(record), origin_line(record)):
        if line:
            yield screen.wrapped(line, style="dim")


def _pictures(record: RunRecord, screen: Screen) -> Iterator[Part]:
    for part in record.parts:
        pictures = [drawn for draw in (timeline_text, live_bars) if (drawn := draw(part, screen))]
        if pictures and record.programs:
            yield ""
            yield screen.wrapped(part.title, style="bold")
        for picture in pictures:
            yield ""
            yield from picture


def _reading(row: Row, record: RunRecord, screen: Screen) -> Iterator[Part]:
    """What the figures of a row say beside the answer, the reason of its verdict last."""
    sentences = [*readings(row, record)]
    reason = why(row)
    if reason is not None and row.judgement is not None:
        sentences.append(f"{row.judgement.word}: {reason}")
    if not sentences:
        return
    yield screen.wrapped(title(row, record), style="bold")
    for sentence in sentences:
        yield screen.wrapped(sentence, "  ")


def _is_unclear(record: RunRecord) -> bool:
    ratios = [run_table.total_ratio(row) for row in record.rows]
    return any(ratio is not None and ratio.verdict == "unclear" for ratio in ratios)


def _is_known(row: Row) -> bool:
    return row.memory is not None and row.memory.peak_live is not None


def _live_table(row: Row, record: RunRecord, screen: Screen) -> tuple[Text, Table]:
    assert row.memory is not None
    assert row.memory.peak_live is not None
    live = row.memory.peak_live
    shown = len(live.largest)
    cut = "" if shown >= live.total_tensors else f", the {shown} largest"
    storages = units.count(live.total_tensors, "storage")
    head = f"{record.label(row)}: {live_title([live])}, {storages}{cut}"
    return screen.titled(live_table(live.largest, head))
