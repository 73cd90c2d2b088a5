"""A panel of a sweep in a terminal: both axes logarithmic, a letter a strategy.

Invariant: every point has a cell; where two strategies have one, it shows `*`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ckptcli.report.sweep_chart import Panel, size_text

ROWS, LEAST_COLUMNS, MOST_COLUMNS = 12, 20, 72
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SHARED = "*"


def plot_lines(panel: Panel, width: int) -> Iterator[str]:
    """The lines of the plot, its title first and its legend last; it fits `width` if that is 40."""
    _, _, low, high = panel.ends
    labels = {0: panel.text(high), ROWS - 1: panel.text(low)}
    margin = max(map(len, labels.values()))
    columns = max(LEAST_COLUMNS, min(MOST_COLUMNS, width - margin - 4))
    yield panel.title
    grid = _grid(panel, columns)
    for row, cells in enumerate(grid):
        yield f"{labels.get(row, ''):>{margin}} |{''.join(cells)}".rstrip()
    yield f"{'':>{margin}} +{'-' * columns}"
    yield f"{'':>{margin}}  {_sizes(panel, columns)}".rstrip()
    names = [f"{_letter(line.series)} {line.name}" for line in panel.lines]
    if any(SHARED in cells for cells in grid):
        names.append(f"{SHARED} several")
    yield f"{'':>{margin}}  {panel.across}; {', '.join(names)}"


def _grid(panel: Panel, columns: int) -> list[list[str]]:
    left, right, low, high = panel.ends
    grid = [[" "] * columns for _ in range(ROWS)]
    for line in panel.lines:
        for x, y in line.points:
            row = ROWS - 1 - _place(y, low, high, ROWS)
            column = _place(x, left, right, columns)
            free = grid[row][column] == " "
            grid[row][column] = _letter(line.series) if free else SHARED
    return grid


def _sizes(panel: Panel, columns: int) -> str:
    """The sizes below their points, as far as they do not touch."""
    left, right, _, _ = panel.ends
    text = ""
    for size in panel.sizes:
        shown = size_text(size)
        start = min(_place(size, left, right, columns), columns - len(shown))
        if start > len(text) or not text:
            text = f"{text:<{start}}{shown}"
    return text


def _place(value: float, low: float, high: float, cells: int) -> int:
    """The cell of a value, from 0; the first where all values are one."""
    if low == high:
        return 0
    return round(math.log(value / low) / math.log(high / low) * (cells - 1))


def _letter(series: int) -> str:
    return LETTERS[series % len(LETTERS)]
