"""What text is rendered for, and by: the only part that imports rich.

Rendered to text and printed elsewhere.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ckptcli.report import cells
from ckptcli.report.fitting import fitted
from ckptcli.report.looks import word_style
from ckptcli.visible import visible

TOGETHER = "\u00a0"
"""A blank at which no line ends."""

_ASCII_HEAD = box.Box("    \n    \n -- \n" + 5 * "    \n", ascii=True)
"""A rule below the head, and nothing else."""

_UNIT = re.compile(r"(?<=\d) (?=(?:[KMGTPE]i)?B\b|%)")

_STYLE = re.compile(r"\x1b\[[\d;]*m")
_END = re.compile(r"(?: |\x1b\[[\d;]*m)+$")


@dataclass(frozen=True, slots=True)
class Screen:
    """What the text is rendered for."""

    width: int = 120
    color: bool = False
    unicode: bool = True

    def render(self, *parts: str | Text | Table) -> str:
        """The parts below each other."""
        stream = io.StringIO()
        console = _Visible(
            file=stream,
            width=self.width,
            height=1000,
            color_system="standard" if self.color else None,
            force_terminal=self.color,
            no_color=not self.color,
            highlight=False,
            emoji=False,
            markup=False,
            _environ={},
        )
        for part in parts:
            part = visible(part) if isinstance(part, str) else part
            console.print(part, soft_wrap=not isinstance(part, Table))
        text = "\n".join(map(_without_end, stream.getvalue().split("\n")))
        return text if self.unicode else text.replace("µ", "u")

    def wrapped(self, text: str, indent: str = "", style: str = "") -> Text:
        """A paragraph that ends at the width; words are never cut, nor figures from their units."""
        filled = textwrap.fill(
            _UNIT.sub(TOGETHER, visible(text)),
            self.width,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        return Text(filled.replace(TOGETHER, " "), style=style)

    def title(self, text: str) -> Text:
        """What stands above a table, which may be narrower than a word of its title."""
        return self.wrapped(text, style="italic")

    def table(self) -> Table:
        """An empty table in the glyphs that the stream has."""
        return Table(box=box.SIMPLE_HEAD if self.unicode else box.MARKDOWN, pad_edge=False)

    def titled(self, table: cells.Table) -> tuple[Text, Table]:
        """The title of a table, and the table below it."""
        return self.title(table.title), self.draw(table)

    def draw(self, table: cells.Table) -> Table:
        """The columns of a table that there is room for, verdicts in their colours; its title
        goes by `titled`.
        """
        fit = fitted(table.written_out(), self.width)
        drawn = self.table()
        drawn.box = box.SIMPLE_HEAD if self.unicode else _ASCII_HEAD
        drawn.show_edge = False
        drawn.padding = (0, 0, 0, 1) if fit.is_tight else (0, 1)
        for column in fit.table.columns:
            folds = column.rank == 0 or column.folds_to is not None
            drawn.add_column(
                column.name,
                justify="right" if column.kind == "figure" else "left",
                overflow="fold",
                no_wrap=not folds,
            )
        for row in fit.table.rows:
            drawn.add_row(
                *(
                    Text(cell.text, word_style(cell.text) if column.kind == "word" else "")
                    for column, cell in fit.table.cells_of(row)
                )
            )
        return drawn


class _Visible(Console):
    """Names of others are in what is drawn; only styles of ours may become escape sequences."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(visible(text, keep="\n"), style, control)


def _without_end(line: str) -> str:
    """The line without blanks at its end, styled ones neither."""
    return _END.sub(lambda found: "".join(_STYLE.findall(found.group())), line)
