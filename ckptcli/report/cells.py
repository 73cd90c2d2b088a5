"""Tables as data: cells with what is said of them in small print, columns with their importance.

Screen, Markdown and page draw these; none of them formats a figure itself.

Invariant: a row has a cell for each column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ckptcli.visible import visible

Kind = Literal["figure", "text", "word"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure, and what is said of it in small print."""

    text: str
    detail: str = ""

    @property
    def whole(self) -> str:
        """Both on one line."""
        comma = "" if self.detail.startswith("[") else ","
        return f"{self.text}{comma} {self.detail}" if self.detail else self.text


@dataclass(frozen=True, slots=True)
class Column:
    """What stands above cells.

    Attributes:
        name: Its head.
        rank: Where there is no room for all, the highest goes first; one of 0 always stays.
        kind: A figure, text, or a verdict in its colour.
        short: The head where there is little room.
        folds_to: The fewest columns of a screen that its text is folded to.
    """

    name: str
    rank: int
    kind: Kind = "figure"
    short: str = ""
    folds_to: int | None = None

    @property
    def narrow(self) -> Column:
        """The same under its short head."""
        return Column(self.short or self.name, self.rank, self.kind, "", self.folds_to)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, and rows of as many cells.

    Attributes:
        title: What stands above it on a screen.
        details_from: A screen of fewer columns has no small print, lest it come and go with the
            digits of times.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    details_from: int = 140

    @property
    def header(self) -> list[str]:
        """The heads of the columns."""
        return [column.name for column in self.columns]

    def written_out(self) -> Table:
        """The table with nothing in it that a terminal would act on: before widths are counted."""
        columns = [replace(c, name=visible(c.name), short=visible(c.short)) for c in self.columns]
        rows = [[Cell(visible(c.text), visible(c.detail)) for c in row] for row in self.rows]
        return replace(self, columns=columns, rows=rows, title=visible(self.title))

    def without(self, left_out: Column) -> Table:
        """The table without a column."""
        kept = [i for i, column in enumerate(self.columns) if column != left_out]
        rows = [[row[i] for i in kept] for row in self.rows]
        return replace(self, columns=[self.columns[i] for i in kept], rows=rows)

    def cells_of(self, row: Sequence[Cell]) -> Iterator[tuple[Column, Cell]]:
        """Each cell of a row with its column."""
        return zip(self.columns, row)
