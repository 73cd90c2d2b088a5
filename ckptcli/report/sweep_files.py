"""Sweeps as files: Markdown, CSV with a line a point and strategy, JSON, and pictures."""

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
from ckptcli.report.law_lines import law_lines
from ckptcli.report.sweep_pictures import HtmlSweep, PngSweep, SvgSweep
from ckptcli.report.sweep_table import heading, sentences, tables
from ckptcli.report.swept import Swept
from ckptcli.sweep.result import SweepResult
from ckptcli.sweep.sweep_json import figures, sweep_object


class MarkdownSweep:
    """A table a metric, and the laws."""

    name: ClassVar[str] = "md"
    suffixes: ClassVar[tuple[str, ...]] = (".md", ".markdown")
    binary: ClassVar[bool] = False

    def render(self, swept: Swept, /) -> str:
        return "\n".join(_lines(swept)) + "\n"


def _lines(swept: Swept) -> Iterator[str]:
    sweep = swept.sweep
    yield f"### {plain(heading(sweep))}"
    for table in tables(sweep):
        yield ""
        yield f"{plain(table.title)}:"
        yield ""
        yield from table_lines(table)
    said = [*law_lines(swept.laws), *sentences(sweep)]
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

    def render(self, swept: Swept, /) -> str:
        stream = io.StringIO()
        lines = list(_csv_lines(swept.sweep))
        header = list(dict.fromkeys(name for line in lines for name in line))
        writer = csv.DictWriter(stream, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        return stream.getvalue()


def _csv_lines(sweep: SweepResult) -> Iterator[dict[str, object]]:
    for point in sweep.points:
        start = {shown_name(axis): point.point[axis] for axis in sweep.axes}
        device = "" if point.record is None else as_text(point.record.device)
        where = {
            **start,
            "host": as_text(point.host or ""),
            "machine": as_text(point.machine or ""),
            "device": device,
            "load_average": point.load_average,
            "status": point.status,
        }
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

    def render(self, swept: Swept, /) -> str:
        return json.dumps(sweep_object(swept.sweep, swept.laws), indent=2, allow_nan=False) + "\n"


_FORMATS: dict[str, type[Exporter[Swept]]] = {
    exporter.name: exporter
    for exporter in (MarkdownSweep, CsvSweep, JsonSweep, HtmlSweep, SvgSweep, PngSweep)
}


def sweep_exporter_for(path: str, format_name: str | None) -> Exporter[Swept]:
    """The format that `format_name` names, else the one for the suffix of `path`.

    Raises:
        UnknownNameError, UsageError: as `ckptcli.report.formats.exporter_for`.
    """
    return chosen(_FORMATS, path, format_name)
