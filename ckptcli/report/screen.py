"""What text is rendered for, and by: the only module that imports rich.

Rendered to text and printed elsewhere.
"""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Screen:
    """What the text is rendered for."""

    width: int = 120
    color: bool = False
    unicode: bool = True

    def render(self, *parts: str | Text | Table) -> str:
        """The parts below each other."""
        stream = io.StringIO()
        console = Console(
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
            console.print(part, soft_wrap=not isinstance(part, Table))
        text = "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))
        return text if self.unicode else text.replace("µ", "u")

    def wrapped(self, text: str, indent: str = "", style: str = "") -> Text:
        """A paragraph that ends at the width; words are never cut."""
        filled = textwrap.fill(
            text,
            self.width,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        return Text(filled, style=style)

    def table(self, title: str | None = None, tight: bool = False) -> Table:
        """An empty table in the glyphs that the stream has."""
        return Table(
            box=box.SIMPLE_HEAD if self.unicode else box.MARKDOWN,
            pad_edge=False,
            padding=(0, 0) if tight else (0, 1),
            title=title,
            title_justify="left",
        )
