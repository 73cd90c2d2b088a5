"""Lines of plain text on stdout, as `--width` and `--color` want them.

A line is wrapped only where a width is known: the one that was asked for, or the terminal's. What a
pipe gets is whole, since scripts read it.
"""

from __future__ import annotations

import re
import sys
import textwrap

import click

from ckptcli.cli.streams import screen_width, use_color
from ckptcli.options.output import ScreenOptions
from ckptcli.visible import visible

_COLOR = re.compile(r"(\x1b\[(?:0|3[0-7])m)")
"""What `styled` puts around a text; whoever writes it into a name gets a colour and no more."""


class TextPage:
    """Prints lines."""

    def __init__(self, options: ScreenOptions) -> None:
        self._is_colored = use_color(options.color, sys.stdout)
        terminal = screen_width(sys.stdout) if sys.stdout.isatty() else None
        self._width = options.width or terminal

    def styled(self, text: str, color: str) -> str:
        """The text in a colour, where there is colour."""
        return click.style(text, fg=color) if self._is_colored else text

    def print(self, line: str, hang: int = 2, begin: str = "") -> None:
        """A line; what it is continued in is indented by `hang`, after `begin`."""
        for part in self._wrapped(self._visible(line), hang, begin):
            click.echo(part, color=True)

    def _visible(self, line: str) -> str:
        if not self._is_colored:
            return visible(line)
        return "".join(
            part if _COLOR.fullmatch(part) else visible(part) for part in _COLOR.split(line)
        )

    def _wrapped(self, line: str, hang: int, begin: str) -> list[str]:
        if self._width is None or len(click.unstyle(line)) <= self._width:
            return [line]
        return textwrap.wrap(
            line,
            self._width,
            subsequent_indent=f"{begin:<{min(hang, self._width // 2)}}",
            drop_whitespace=True,
            break_on_hyphens=False,
        )
