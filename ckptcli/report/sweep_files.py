"""Sweeps as files: Markdown, CSV with a line a point and strategy, and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import ClassVar

from ckptcli.measure.point import shown_name
from ckptcli.report.formats import Exporter, chosen
from ckptcli.report.formats.csv import as_text
from ckptcli.report.formats.md import plain, table_lines
from ckptcli.report.sweep_table import heading, sentences, tables
from ckptcli.sweep.result import SweepResult
from ckptcli.sweep.sweep_json import figures, sweep_object


class MarkdownSweep:
    """A table a metric."""

    name: ClassVar[str] = "md"
    suffixes: ClassVar[tuple[str, ...]] = (".md", ".markdown")
    binary: ClassVar[bool] = False

    def render(self, sweep: SweepResult, /) -> str:
        return "\n".join(_lines(sweep)) + "\n"


def _lines(sweep: SweepResult) -> Iterator[str]:
    yield f"### {plain(heading(sweep))}"
    for table in tables(sweep):
        yield ""
        yield f"{plain(table.title)}:"
        yield ""
        yield from table_lines(table)
    said = list(sentences(sweep))
    if said:
        yield ""
        yield from (f"- {plain(line)}" for line in said)


class CsvSweep:
    """A header, and a line for each row of each point: figures in SI base units; of a point or a
    row without figures its reason.
    """

    name: ClassVar[str] = "csv"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    binary: ClassVar[bool] = False

    def render(self, sweep: SweepResult, /) -> str:
        stream = io.StringIO()
        lines = list(_csv_lines(sweep))
        header = list(dict.fromkeys(name for line in lines for name in line))
        writer = csv.DictWriter(stream, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        return stream.getvalue()


def _csv_lines(sweep: SweepResult) -> Iterator[dict[str, object]]:
    for point in sweep.points:
        start = {shown_name(axis): point.point[axis] for axis in sweep.axes}
        where = {**start, "host": as_text(point.host or ""), "status": point.status}
        for name, row in point.rows().items():
            yield {**where, **figures(as_text(name), row), "reason": ""}
        for name, why in point.missing().items():
            yield {**where, "strategy": as_text(name), "reason": as_text(why)}
        if point.record is None:
            yield {**where, "strategy": "", "reason": as_text(point.reason or "")}


class JsonSweep:
    """The same as `ckpt sweep --json`: schema `ckpt.sweep/1`."""

    name: ClassVar[str] = "json"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)
    binary: ClassVar[bool] = False

    def render(self, sweep: SweepResult, /) -> str:
        return json.dumps(sweep_object(sweep), indent=2, allow_nan=False) + "\n"


_FORMATS: dict[str, type[Exporter[SweepResult]]] = {
    exporter.name: exporter for exporter in (MarkdownSweep, CsvSweep, JsonSweep)
}


def sweep_exporter_for(path: str, format_name: str | None) -> Exporter[SweepResult]:
    """The format that `format_name` names, else the one for the suffix of `path`.

    Raises:
        UnknownNameError, UsageError: as `ckptcli.report.formats.exporter_for`.
    """
    return chosen(_FORMATS, path, format_name)
