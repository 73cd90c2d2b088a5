"""The samples of a run for the eye: a table of statistics, and histograms."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from ckptcli import units
from ckptcli.measure.histogram import Histogram
from ckptcli.measure.statistics import Description
from ckptcli.report.screen import Screen

if TYPE_CHECKING:
    from rich.table import Table

FEWEST_COLUMNS = 10


def statistics_table(strategy: str, phases: Mapping[str, Description], screen: Screen) -> Table:
    """One strategy: a column a phase, a row a figure."""
    table = screen.table()
    table.add_column(strategy, overflow="fold")
    for phase in phases:
        table.add_column(phase, justify="right")
    rows = [_rows(description) for description in phases.values()]
    for name in rows[0]:
        table.add_row(name, *(row[name] for row in rows))
    return table


def _rows(description: Description) -> dict[str, str]:
    duration = units.duration
    return {
        "n": str(description.count),
        "median": duration(description.median),
        "95 % low": duration(description.low),
        "95 % high": duration(description.high),
        "IQR / median": f"{description.iqr_share:.1%}",
        "min": duration(description.least),
        "p5": duration(description.p5),
        "p95": duration(description.p95),
        "max": duration(description.most),
        "mean": duration(description.mean),
        "standard deviation": duration(description.deviation),
    }


def histogram_text(histogram: Histogram, width: int, unicode: bool) -> str:
    """A bar a bin, the strategies below each other on the same bins."""
    labels = _labels(histogram)
    most = max(max(counts) for counts in histogram.counts.values())
    room = max(FEWEST_COLUMNS, width - max(map(len, labels)) - len(str(most)) - 4)
    glyph = "█" if unicode else "#"
    lines = ["forward + backward, rounds in each stretch of time"]
    for strategy, counts in histogram.counts.items():
        lines.append(strategy)
        filled = [i for i, count in enumerate(counts) if count]
        for i in range(filled[0], filled[-1] + 1):
            bar = glyph * -(-counts[i] * room // most)
            lines.append(f"  {labels[i]} {counts[i]:>{len(str(most))}} {bar}".rstrip())
    return "\n".join(lines) + "\n"


def _labels(histogram: Histogram) -> list[str]:
    """What each bin spans, all of one width and unit."""
    edges = histogram.edges
    texts = units.durations(edges)
    width = max(map(len, texts))
    spans = [f"{low:>{width}} .. {high:>{width}}" for low, high in pairwise(texts)]
    return [*spans, f"{texts[-1]:>{width}} ..".ljust(len(spans[0]))]
