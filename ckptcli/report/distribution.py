"""The samples of a run for the eye: a table of statistics, and histograms."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from ckptcli import units
from ckptcli.measure.histogram import Histogram
from ckptcli.measure.statistics import Description
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.screen import Screen

if TYPE_CHECKING:
    from rich.table import Table

FEWEST_COLUMNS = 10


def statistics_table(strategy: str, phases: Mapping[str, Description], screen: Screen) -> Table:
    """One strategy: a column a phase, a row a figure."""
    known = [_rows(description) for description in phases.values()]
    ranks = {"total": 1, "backward": 2, "forward": 3}
    columns = [Column(strategy, 0, "text"), *(Column(p, ranks.get(p, 1)) for p in phases)]
    rows = [[Cell(name), *(Cell(row[name]) for row in known)] for name in known[0]]
    return screen.draw(cells.Table(columns, rows))


def _rows(description: Description) -> dict[str, str]:
    seconds = (
        *(description.median, description.low, description.high, description.least),
        *(description.p5, description.p95, description.most, description.mean),
    )
    scale = units.time_scale(seconds)

    def duration(time_s: float | None) -> str:
        return units.duration(time_s, scale)

    return {
        "samples": str(description.count),
        "median": duration(description.median),
        "95 % low": duration(description.low),
        "95 % high": duration(description.high),
        "IQR / median": units.percent(description.iqr_share, 1),
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
