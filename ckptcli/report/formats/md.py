"""The comparison as a Markdown table, for an issue or a pull request.

Source of the dialect: GitHub Flavored Markdown, tables; a pipe in a cell is escaped. Names are
escaped so that they show as they are, HTML included.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from ckptcli.measure.record import RunRecord, StrategyRecord
from ckptcli.report import comparison
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
    yield _plain(comparison.summary_line(record))
    yield ""
    yield _line(comparison.HEADER)
    yield _line(["---", *["---:"] * 7, "---", "---"])
    for row in comparison.rows(record):
        yield _line(_plain(cell.whole) for cell in row)
    yield ""
    for strategy in record.strategies:
        yield f"- **{_plain(strategy.strategy)}**: {_plain(_sentence(strategy, record))}"
    for peer in record.peers:
        sentences = "; ".join(comparison.peer_sentences(peer))
        yield f"- **{_plain(comparison.peer_title(peer))}**: {_plain(sentences)}"
    if record.warnings:
        yield ""
        yield from (f"- warning: {_plain(warning)}" for warning in record.warnings)
    yield ""
    yield _plain(comparison.machine_line(record))


def _sentence(strategy: StrategyRecord, record: RunRecord) -> str:
    word = "reference" if strategy is record.reference else None
    if strategy.judgement is not None:
        word = strategy.judgement.word
    parts = [
        comparison.reason(strategy, record)
        if word is None
        else f"{word}: {comparison.reason(strategy, record)}",
        comparison.recomputes(strategy),
        comparison.gradients(strategy, record),
    ]
    return "; ".join(part for part in parts if part)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """`text` on one line, shown as it is."""
    flat = " ".join(printable(text).split())
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", html.escape(flat, quote=False))
