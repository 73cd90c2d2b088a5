"""A comparison of two saved runs for the eye: what to think of it, then one table a strategy."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ckptcli.measure.compare import RunComparison
from ckptcli.report.compare_table import readings, run_line, strategy_table
from ckptcli.report.screen import Screen


def render_comparison(
    comparison: RunComparison, screen: Screen, *, base_name: str, new_name: str
) -> str:
    """The whole screen, ready to print; the names are those of the files."""
    parts: list[str | Text | Table] = [
        screen.wrapped(f"base: {run_line(base_name, comparison.base)}"),
        screen.wrapped(f"new:  {run_line(new_name, comparison.new)}"),
    ]
    for entry in comparison.strategies:
        parts += ["", screen.draw(strategy_table(entry))]
    parts += ["", *(screen.wrapped(line) for line in readings(comparison))]
    return screen.render(*parts)
