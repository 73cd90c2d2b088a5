"""Comparisons of saved runs for a pull request: GitHub Flavored Markdown, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ckptcli.measure.compare import RunComparison
from ckptcli.measure.compare_json import comparison_object
from ckptcli.report.compare_table import readings, run_line, whole_table
from ckptcli.report.formats.md import plain, table_lines
from ckptcli.report.surroundings import heading


def comparison_markdown(
    base_name: str, new_names: Sequence[str], comparisons: Sequence[RunComparison]
) -> str:
    """One section for each run that the base was compared with; at least one."""
    first = comparisons[0]
    lines = [
        f"### {plain(heading(first.base))}: compared with {plain(base_name)}",
        "",
        plain(f"base: {run_line(base_name, first.base)}"),
    ]
    for name, comparison in zip(new_names, comparisons):
        lines += ["", *_section(name, comparison)]
    return "\n".join(lines) + "\n"


def comparison_json(
    base_name: str, new_names: Sequence[str], comparisons: Sequence[RunComparison]
) -> str:
    """The same as `ckpt compare --json`: schema `ckpt.compare/1`."""
    data = comparison_object(base_name, new_names, comparisons)
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _section(name: str, comparison: RunComparison) -> Iterator[str]:
    yield plain(f"new: {run_line(name, comparison.new)}")
    yield ""
    yield from table_lines(whole_table(comparison))
    yield ""
    yield from (f"- {plain(line)}" for line in readings(comparison))
