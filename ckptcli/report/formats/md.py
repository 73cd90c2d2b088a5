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
from ckptcli.report import comparison, readings, surroundings
from ckptcli.report.drawing.markup import printable
from ckptcli.report.formats.base import register

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
    yield f"### {_plain(record.title)}"
    yield ""
    yield _plain(surroundings.summary_line(record))
    yield ""
    yield _line(comparison.HEADER)
    yield _line(["---", *["---:"] * 7, "---", "---"])
    for cells in comparison.rows(record):
        yield _line(_plain(cell.whole) for cell in cells)
    yield ""
    for row in record.rows:
        sentences = _plain(_sentence(row, record))
        yield f"- **{_plain(readings.title(row, record))}**: {sentences}"
    if record.warnings:
        yield ""
        yield from (f"- warning: {_plain(warning)}" for warning in record.warnings)
    yield ""
    yield _plain(surroundings.machine_line(record))


def _sentence(row: Row, record: RunRecord) -> str:
    word = comparison.verdict(row, record)
    why = readings.reason(row, record)
    first = why if row.reason is not None else f"{word}: {why}"
    return "; ".join([first, *readings.readings(row, record)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """`text` on one line, shown as it is."""
    flat = " ".join(printable(text).split())
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", html.escape(flat, quote=False))
