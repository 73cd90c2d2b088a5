"""What is live at the highest point, a bar a row of the record on one common scale."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ckptcli import units
from ckptcli.measure.memory import PeakLive
from ckptcli.measure.record import RunRecord
from ckptcli.report.charts import live_title, live_when_highest
from ckptcli.report.looks import Look, bytes_by_look, legend_of, why_look
from ckptcli.report.screen import TOGETHER, Screen
from ckptcli.report.timeline_text import FEWEST_COLUMNS, beside, name_width, picture_width
from ckptcli.visible import visible

FIGURE_WIDTH = 12
"""Columns for the size behind a bar."""


def live_bars(record: RunRecord, screen: Screen) -> list[Text]:
    """The legend of what occurs, then a bar a row; empty where nobody tells."""
    known = live_when_highest(record)
    if not known:
        return []
    width = picture_width(screen)
    room = name_width([visible(name) for _, name, _ in known], width - FIGURE_WIDTH)
    columns = max(FEWEST_COLUMNS, width - room - 2 - FIGURE_WIDTH)
    scale = max(live.total_bytes for _, _, live in known)
    lengths = [dict(_lengths(live, columns, scale)) for _, _, live in known]
    whys = legend_of(why for drawn in lengths for why, length in drawn.items() if length)
    legend = ", ".join(f"{_glyph(why_look(why), screen)}{TOGETHER}{why}" for why in whys)
    head = live_title(live for _, _, live in known)
    lines = [screen.wrapped(f"{head}: {legend}")]
    for (_, name, live), drawn in zip(known, lengths):
        line = Text(beside(visible(name), room))
        for why, length in drawn.items():
            look = why_look(why)
            line.append(_glyph(look, screen) * length, style=look.style)
        lines.append(line.append(f" {units.size(live.total_bytes)}"))
    return lines


def _glyph(look: Look, screen: Screen) -> str:
    return look.glyph if screen.unicode else look.letter


def _lengths(live: PeakLive, columns: int, scale: int) -> Iterator[tuple[str, int]]:
    """How many columns each kind has; together as many as the whole has."""
    end, total_bytes = 0, 0
    for why, size_bytes in bytes_by_look(live.bytes_by_why).items():
        total_bytes += size_bytes
        start, end = end, round(columns * total_bytes / scale)
        yield why, end - start
