"""Live bytes over the pass as lines of text, one row of the record a line, on one common scale.

A column is one stretch of ops (`ckptcli.report.charts`); its bar is the most that was live in it.
Forward and backward are told apart by a mark between them, which stands below each other in all
lines; the op at which most is live is marked and named below.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ckptcli import units
from ckptcli.measure.record import RunRecord
from ckptcli.report.charts import (
    Column,
    Columns,
    Curve,
    common_span,
    curves_of,
    op_text,
    resample,
)
from ckptcli.report.screen import Screen
from ckptcli.visible import visible

_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = " .:-=+*#@"

MOST_WIDTH = 100
FEWEST_COLUMNS = 16
MARGIN = 6
"""Columns of a line beside its label and its curve."""


def picture_width(screen: Screen) -> int:
    """Wider pictures say no more."""
    return min(screen.width, MOST_WIDTH)


def name_width(names: Sequence[str], width: int) -> int:
    """The room for names before pictures; 0 where they have to stand on lines of their own."""
    longest = max(map(len, names), default=0)
    return longest if longest + MARGIN + FEWEST_COLUMNS <= width else 0


def beside(name: str, room: int) -> str:
    """What stands before a picture: its name, or the name on a line of its own."""
    return f"{name:<{room}}  " if room else f"{name}\n  "


def timeline_text(record: RunRecord, screen: Screen) -> list[Text]:
    """A line a row, then one that names its highest op; empty without a timeline."""
    curves = curves_of(record)
    if not curves:
        return []
    width = picture_width(screen)
    room = name_width([visible(drawn.name) for drawn in curves], width)
    columns = max(FEWEST_COLUMNS, width - room - MARGIN)
    span = common_span(curves)
    sampled = [resample(drawn, columns, span) for drawn in curves]
    scale = max(_high_bytes(column) for drawn in sampled for column in _all(drawn)) or 1
    head = f"live bytes over the pass, forward | backward; full height {units.size(scale)}"
    lines = [screen.wrapped(head)]
    for drawn, known in zip(curves, sampled):
        name = beside(visible(drawn.name), room)
        lines.append(Text(f"{name}{_line(known, scale, screen.unicode)}"))
        mark = _mark(drawn, known, columns, screen.unicode)
        lines.append(Text(f"{'':<{room}}  {mark}"))
    return lines


def _all(drawn: Columns) -> list[Column]:
    return [*drawn.forward, *drawn.backward]


def _high_bytes(column: Column) -> int:
    return 0 if column.point is None else column.point.high_bytes


def _line(drawn: Columns, scale: int, unicode: bool) -> str:
    blocks = _BLOCKS if unicode else _ASCII_BLOCKS
    forward, backward = (
        "".join(blocks[-(-_high_bytes(column) * (len(blocks) - 1) // scale)] for column in part)
        for part in (drawn.forward, drawn.backward)
    )
    return f"{forward}{'|' if forward and backward else ''}{backward}"


def _mark(drawn: Curve, sampled: Columns, columns: int, unicode: bool) -> str:
    """An arrow below the highest op, and what it is, as far as there is room."""
    index = sampled.highest or 0
    point = sampled.points[index]
    assert point is not None, f"{drawn.name} has at least one op"
    is_behind = index >= len(sampled.forward) > 0
    offset = index + is_behind
    arrow = "▲" if unicode else "^"
    size = units.size(point.high_bytes)
    node = [] if point.node is None else [f"node {point.node}"]
    whole = ["at most", f"{size},"]
    for words in ([*whole, *visible(op_text(point)).split()], [*whole, *node], ["at most", size]):
        placed = _around(arrow, offset, words, columns + MARGIN - 2)
        if placed is not None:
            return placed
    return " " * offset + arrow


def _around(mark: str, offset: int, words: Sequence[str], width: int) -> str | None:
    """`mark` at `offset` with the words to its right, else to its left, else on both sides."""
    for cut in (0, len(words), *range(1, len(words))):
        left, right = " ".join([*words[:cut], ""]), " ".join(["", *words[cut:]])
        if len(left) <= offset and offset + 1 + len(right) <= width:
            return left.rjust(offset) + mark + right
    return None
