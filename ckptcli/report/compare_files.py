"""Comparisons of saved runs as files: GitHub Flavored Markdown for a pull request, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ckptcli.measure.compare import RunComparison
from ckptcli.measure.compare_json import comparison_object
from ckptcli.report.compare_table import readings, run_line, whole_table
from ckptcli.report.formats import Exporter, chosen
from ckptcli.report.formats.md import plain, table_lines
from ckptcli.report.surroundings import heading


@dataclass(frozen=True, slots=True)
class Comparisons:
    """A base and what it was compared with, at least one run; the names are those of the files."""

    base_name: str
    new_names: Sequence[str]
    comparisons: Sequence[RunComparison]


class MarkdownComparison:
    """One section for each run that the base was compared with."""

    name: ClassVar[str] = "md"
    suffixes: ClassVar[tuple[str, ...]] = (".md", ".markdown")
    binary: ClassVar[bool] = False

    def render(self, result: Comparisons, /) -> str:
        base = result.comparisons[0].base
        lines = [
            f"### {plain(heading(base))}: compared with {plain(result.base_name)}",
            "",
            plain(f"base: {run_line(result.base_name, base)}"),
        ]
        for name, comparison in zip(result.new_names, result.comparisons):
            lines += ["", *_section(name, comparison)]
        return "\n".join(lines) + "\n"


class JsonComparison:
    """The same as `ckpt compare --json`: schema `ckpt.compare/1`."""

    name: ClassVar[str] = "json"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)
    binary: ClassVar[bool] = False

    def render(self, result: Comparisons, /) -> str:
        data = comparison_object(result.base_name, result.new_names, result.comparisons)
        return json.dumps(data, indent=2, allow_nan=False) + "\n"


_FORMATS: dict[str, type[Exporter[Comparisons]]] = {
    exporter.name: exporter for exporter in (MarkdownComparison, JsonComparison)
}


def comparison_exporter_for(path: str, format_name: str | None) -> Exporter[Comparisons]:
    """The format that `format_name` names, else the one for the suffix of `path`.

    Raises:
        UnknownNameError, UsageError: as `ckptcli.report.formats.exporter_for`.
    """
    return chosen(_FORMATS, path, format_name)


def _section(name: str, comparison: RunComparison) -> Iterator[str]:
    yield plain(f"new: {run_line(name, comparison.new)}")
    yield ""
    yield from table_lines(whole_table(comparison))
    yield ""
    yield from (f"- {plain(line)}" for line in readings(comparison))
