"""What is held after forward, for the eye: of each strategy a list, largest first, and sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.measure.by_hand import PartBytes, total_of
from ckptcli.measure.saved_list import SavedEntry, SavedList, SavedProgram, SavedTotal
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.screen import Screen

WIDE = 100
"""From here on lines of the program stand whole, if they take at most a third of the screen."""

COLUMNS = (
    Column("node", 0),
    Column("size", 0),
    Column("module", 1, "text", folds_to=9),
    Column("op", 2, "text"),
    Column("name", 3, "text"),
    Column("shape", 4, "text", folds_to=9),
    Column("made at", 5, "text", folds_to=16),
    Column("function", 9, "text", folds_to=12),
    Column("within", 10, "text", folds_to=9),
    Column("held by", 6, "text", folds_to=12),
    Column("freed after", 7, "text", folds_to=12),
    Column("why", 8, "text", folds_to=12),
)
PLACE = COLUMNS[6]

BELOW = ("line", "function", "name")
"""The sums that stand below a list, where they say more than it does."""

Part = str | Text | Table


def render_saved(program: SavedProgram, by: str | None, depth: int | None, screen: Screen) -> str:
    """The lists of a program, or with `by` their sums, ready to print."""
    parts: list[Part] = [program.title]
    for found in program.shown:
        parts += ["", *_list(found, program.sums, by, depth, screen)]
    return screen.render(*parts)


def _list(
    found: SavedList, sums: Sequence[str], by: str | None, depth: int | None, screen: Screen
) -> Iterator[Part]:
    if found.reason is not None:
        yield f"{found.strategy}: {units.UNKNOWN}: {found.reason}"
        return
    tensors, size = units.count(found.saved_tensors, "tensor"), units.size(found.saved_bytes)
    yield f"{found.strategy}: {tensors}, {size} held{_not_held(found)}"
    if not found.held:
        return
    if by is None:
        tables = [_entries(found, screen.width), *_sums(found, sums)]
    else:
        tables = [_totals(found.totals(by, depth), by)]
    for table in tables:
        yield ""
        yield screen.draw(table)
    if found.by_hand:
        yield screen.title("beside reverse sweeps written by hand, in bytes")
        yield _by_hand(found.by_hand, screen)


def _not_held(found: SavedList) -> str:
    """`; beside 5 arguments and 2 literals`, which are no memory of its own."""
    kinds = Counter(entry.not_held_as for entry in found.saved if entry.not_held_as)
    parts = [units.count(number, kind) for kind, number in sorted(kinds.items())]
    return f"; beside {' and '.join(parts)}" if parts else ""


def _entries(found: SavedList, width: int) -> cells.Table:
    """A row an entry; a column that nothing is known for is left out."""
    rows = [_row(entry) for entry in found.held]
    longest = max(len(entry.words().made_at) for entry in found.held)
    is_whole = width >= WIDE and longest <= width // 3
    columns = [replace(c, folds_to=None) if c == PLACE and is_whole else c for c in COLUMNS]
    table = cells.Table(columns, rows)
    for index, column in enumerate(columns):
        if not any(row[index].text for row in rows):
            table = table.without(column)
    return table


def _row(entry: SavedEntry) -> list[Cell]:
    words = entry.words()
    texts = (
        words.node,
        units.size(entry.bytes),
        words.module,
        words.op,
        words.name,
        f"{list(entry.shape)} {entry.dtype}",
        words.made_at,
        words.function,
        words.within,
        words.held_by,
        words.freed_after,
        words.why,
    )
    return [Cell(text) for text in texts]


def _sums(found: SavedList, sums: Sequence[str]) -> Iterator[cells.Table]:
    """Those that say more than the list: of what several entries have in common."""
    for by in BELOW:
        totals = found.totals(by) if by in sums else []
        if any(total.tensors > 1 for total in totals) and totals[0].share < 1.0:
            yield _totals(totals, by)


def _totals(totals: Sequence[SavedTotal], by: str) -> cells.Table:
    columns = (
        Column("size", 0),
        Column("share", 1),
        Column("tensors", 2),
        Column(f"by {by}", 0, "text", folds_to=16),
    )
    rows = [
        [
            Cell(units.size(t.bytes)),
            Cell(units.percent(t.share, 1)),
            Cell(str(t.tensors)),
            Cell(t.key),
        ]
        for t in totals
    ]
    return cells.Table(columns, rows)


def _by_hand(parts: Sequence[PartBytes], screen: Screen) -> Table:
    """What is held beside what sweeps written by hand keep, part by part, in bytes."""
    table = screen.table()
    for name in ("part", "held", "with residuals", "difference", "with replay"):
        table.add_column(name, justify="left" if name == "part" else "right", no_wrap=True)
    for part in (*parts, total_of(parts)):
        table.add_row(
            part.part,
            str(part.held_bytes),
            str(part.residual_bytes),
            f"{part.held_bytes - part.residual_bytes:+d}",
            str(part.replay_bytes),
        )
    return table
