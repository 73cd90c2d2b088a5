"""A sweep for the eye: what it was over, a table a metric, then what they do not say."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ckptcli.report.law_lines import law_lines
from ckptcli.report.screen import Screen
from ckptcli.report.sweep_chart import Panel, panels
from ckptcli.report.sweep_plot_text import plot_lines
from ckptcli.report.sweep_table import heading, sentences, tables
from ckptcli.sweep.laws.of_sweep import Laws
from ckptcli.sweep.result import SweepResult


def render_sweep(sweep: SweepResult, laws: Laws, screen: Screen, *, quiet: bool = False) -> str:
    """The whole screen, ready to print; `quiet` has no plots."""
    parts: list[str | Text | Table] = [screen.wrapped(heading(sweep))]
    for table in tables(sweep):
        parts += ["", *screen.titled(table)]
    for panel in _plotted(sweep) if not quiet else ():
        parts += ["", *map(Text, plot_lines(panel, screen.width))]
    said = [screen.wrapped(line) for line in (*law_lines(laws), *sentences(sweep))]
    parts += ["", *said] if said else []
    return screen.render(*parts)


def _plotted(sweep: SweepResult) -> list[Panel]:
    """The first panel of each metric: a screen has no room for all."""
    first: dict[str, Panel] = {}
    for panel in panels(sweep):
        first.setdefault(panel.metric, panel)
    return list(first.values())
