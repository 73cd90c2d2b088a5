"""Live bytes over the pass as lines of text, one strategy a line, on one common scale.

A column is one stretch of ops; its bar is the most that was live in it. Forward and backward are
told apart by a mark between them; the peak is marked and named below.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli import units
from ckptcli.measure.memory import PeakLive
from ckptcli.measure.record import RunRecord
from ckptcli.measure.trace import TimelinePoint, Trace

_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = " .:-=+*#@"
_WHY_GLYPHS = {
    "parameter": ("p", "p"),
    "input": ("i", "i"),
    "saved": ("█", "#"),
    "recomputed": ("▓", "R"),
    "gradient": ("▒", "g"),
    "gradient of a parameter": ("░", "G"),
}
"""What sets a peak, in the order in which a bar shows it; everything else counts as temporary."""

FEWEST_COLUMNS = 16
MARGIN = 6
"""Columns of a line beside its label and its curve."""


@dataclass(frozen=True, slots=True)
class Column:
    """One stretch of the pass: the most that was live, and the op at which it was."""

    phase: str
    high_bytes: int
    point: TimelinePoint


def timeline_text(record: RunRecord, width: int, unicode: bool) -> str:
    """A line a strategy, then one that names each peak; empty without a timeline."""
    named = [(row.strategy, trace) for row, trace in record.rows_with_trace if trace.timeline]
    if not named:
        return ""
    label = max(len(name) for name, _ in named)
    columns = max(FEWEST_COLUMNS, width - label - MARGIN)
    scale = max(point.high_bytes for _, trace in named for point in trace.timeline)
    lines = [
        f"live bytes over the pass, forward | backward; full height {units.size(scale)}",
    ]
    for name, trace in named:
        drawn = _line(resample(trace.timeline, columns), scale, unicode)
        lines.append(f"{name:<{label}}  {drawn}")
        lines.append(f"{'':<{label}}  {_peak_mark(trace, columns, unicode)}")
    return "\n".join(line.rstrip() for line in lines)


def resample(timeline: Sequence[TimelinePoint], columns: int) -> list[Column]:
    """At most `columns` columns; every phase has at least one, no peak is lost."""
    forward = [point for point in timeline if point.phase == "forward"]
    backward = [point for point in timeline if point.phase != "forward"]
    share = round(columns * len(forward) / len(timeline))
    counts = [(forward, share), (backward, columns - share)]
    return [
        column
        for points, wanted in counts
        if points
        for column in _columns(points, max(1, min(wanted, len(points))))
    ]


def peak_bars(record: RunRecord, width: int, unicode: bool) -> str:
    """What is live at each strategy's peak, as one bar a strategy on one common scale."""
    peaks = live_at_peaks(record)
    label = max((len(name) for name, _ in peaks), default=0)
    scale = max((live.total_bytes for _, live in peaks), default=0)
    if scale == 0:
        return ""
    room = max(FEWEST_COLUMNS, width - label - 14)
    lines = ["at the peak of backward: " + _legend(unicode)]
    for name, live in peaks:
        bar = "".join(
            glyph * round(room * size_bytes / scale) for glyph, size_bytes in _shares(live, unicode)
        )
        lines.append(f"{name:<{label}}  {bar} {units.size(live.total_bytes)}")
    return "\n".join(lines)


def live_at_peaks(record: RunRecord) -> list[tuple[str, PeakLive]]:
    """What was live at the peak of each row that tells."""
    known = [(row.strategy, row.memory) for row in record.rows if row.memory is not None]
    return [(name, m.peak_live) for name, m in known if m.peak_live is not None]


def _columns(points: Sequence[TimelinePoint], count: int) -> list[Column]:
    edges = [len(points) * i // count for i in range(count + 1)]
    stretches = [points[start:stop] for start, stop in itertools.pairwise(edges)]
    highest = [max(stretch, key=lambda point: point.high_bytes) for stretch in stretches]
    return [Column(point.phase, point.high_bytes, point) for point in highest]


def _line(columns: Sequence[Column], scale: int, unicode: bool) -> str:
    blocks = _BLOCKS if unicode else _ASCII_BLOCKS
    text = ""
    for before, column in zip([columns[0], *columns], columns):
        if before.phase == "forward" != column.phase:
            text += "|"
        text += blocks[-(-column.high_bytes * (len(blocks) - 1) // scale)]
    return text


def _peak_mark(trace: Trace, columns: int, unicode: bool) -> str:
    drawn = resample(trace.timeline, columns)
    position = max(range(len(drawn)), key=lambda i: drawn[i].high_bytes)
    point = drawn[position].point
    bar = point.phase != "forward" and any(column.phase == "forward" for column in drawn)
    size = f"peak {units.size(point.high_bytes)}"
    of, op = f"of node {point.node}", f"({point.op})"
    offset = position + bar
    mark = "▲" if unicode else "^"
    for words in ((size, f"in {point.phase}", of, op), (size, of, op), (size, of)):
        placed = _around(mark, offset, words, columns + MARGIN - 2)
        if placed is not None:
            return placed
    return " " * offset + mark


def _around(mark: str, offset: int, words: Sequence[str], width: int) -> str | None:
    """`mark` at `offset` with the words to its right, else to its left, else on both sides."""
    for cut in (0, len(words), *range(1, len(words))):
        left, right = " ".join([*words[:cut], ""]), " ".join(["", *words[cut:]])
        if len(left) <= offset and offset + 1 + len(right) <= width:
            return left.rjust(offset) + mark + right
    return None


def _shares(live: PeakLive, unicode: bool) -> list[tuple[str, int]]:
    by_why = dict(live.bytes_by_why)
    index = 0 if unicode else 1
    shares = [(glyphs[index], by_why.pop(why, 0)) for why, glyphs in _WHY_GLYPHS.items()]
    return [*shares, ("t", sum(by_why.values()))]


def _legend(unicode: bool) -> str:
    index = 0 if unicode else 1
    named = [f"{glyphs[index]} {why}" for why, glyphs in _WHY_GLYPHS.items()]
    return ", ".join([*named, "t temporary"])
