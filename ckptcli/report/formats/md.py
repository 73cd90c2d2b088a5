"""The comparison as a Markdown table, for an issue or a pull request.

Source of the dialect: GitHub Flavored Markdown, tables; a pipe in a cell is escaped. Names are
escaped so that they show as they are, HTML included.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.report import readings, run_table, surroundings
from ckptcli.report.cells import Table
from ckptcli.report.compiled_table import compiled_table
from ckptcli.report.formats.base import register
from ckptcli.report.gradient_table import gradient_lines, gradient_table
from ckptcli.report.phase_table import phase_table
from ckptcli.visible import visible

_SPECIAL = re.compile(r"[\\`*~|#]|(?<!\w)_|_(?!\w)|\](?=\()")


@register
class MarkdownExporter:
    """Title, table, a verdict for each strategy, warnings, machine."""

    name: ClassVar[str] = "md"
    suffixes: ClassVar[tuple[str, ...]] = (".md", ".markdown")
    binary: ClassVar[bool] = False

    def render(self, record: RunRecord) -> str:
        return "\n".join(_lines(record)) + "\n"


def _lines(record: RunRecord) -> Iterator[str]:
    yield f"### {plain(surroundings.heading(record))}"
    yield ""
    yield plain(surroundings.rounds_line(record))
    yield ""
    yield from table_lines(run_table.table(record))
    yield ""
    yield from _gradients(record)
    for more in (compiled_table(record), phase_table(record)):
        if more is not None:
            yield from (*table_lines(more), "")
    for row in record.rows:
        sentences = plain(_sentence(row, record))
        yield f"- **{plain(readings.title(row, record))}**: {sentences}"
    if record.warnings:
        yield ""
        yield from (f"- warning: {plain(warning)}" for warning in record.warnings)
    yield ""
    origin = surroundings.origin_line(record)
    yield plain(f"{surroundings.machine_line(record)}{'; ' if origin else ''}{origin}")


def _gradients(record: RunRecord) -> Iterator[str]:
    """What a program with one number to differentiate by is held against."""
    gradients = gradient_table(record)
    if gradients is None:
        return
    yield from (f"{plain(line)}  " for line in gradient_lines(record))
    yield ""
    yield from table_lines(gradients)
    yield ""


def _sentence(row: Row, record: RunRecord) -> str:
    reason = readings.why(row)
    return "; ".join(
        [
            readings.answer(row, record),
            *([reason] if reason else []),
            *readings.readings(row, record),
        ]
    )


def table_lines(table: Table) -> Iterator[str]:
    """A table of cells, figures to the right."""
    yield _line(plain(column.name) for column in table.columns)
    yield _line("---:" if column.kind == "figure" else "---" for column in table.columns)
    for row in table.rows:
        yield _line(plain(cell.whole) for cell in row)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def plain(text: str) -> str:
    """`text` on one line, shown as it is."""
    flat = " ".join(visible(text).split())
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", html.escape(flat, quote=False))
