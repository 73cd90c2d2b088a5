"""What the terminal can show: colour, width, glyphs; and where notes go.

Colour: `--color` over NO_COLOR over FORCE_COLOR over "is it a terminal that has colour". A variable
that is set to nothing does not count.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

import click

from ckptcli.visible import visible

if TYPE_CHECKING:
    from ckptcli.measure.record import RunRecord
    from ckptcli.report.progress_lines import Shown

PIPE_WIDTH = 120
BAR_WIDTH = 24
LONGEST_LINE = 2000
GLYPHS = "µ─▁█▓▲"


def use_color(choice: str, stream: TextIO) -> bool:
    """Whether to style what goes to `stream`; `choice` is always, never or auto."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def screen_width(stream: TextIO) -> int:
    """The terminal's width; in a pipe one that cuts no table."""
    return shutil.get_terminal_size().columns if stream.isatty() else PIPE_WIDTH


def has_glyphs(stream: TextIO) -> bool:
    """Whether the stream's encoding has what the tables draw with."""
    try:
        GLYPHS.encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def warn(messages: Iterable[str], quiet: bool = False) -> None:
    """Each message on stderr, unless `quiet`."""
    if quiet:
        return
    for message in messages:
        say(f"warning: {visible(message)}")


def note(message: str, quiet: bool = False) -> None:
    """A message on stderr that is no warning, unless `quiet`."""
    if not quiet:
        say(f"note: {visible(message)}")


def hint(message: str, quiet: bool = False) -> None:
    """A message on stderr that says what to do next, unless `quiet`."""
    if not quiet:
        say(visible(message))


def say(text: str) -> None:
    """Lines on stderr; what of them a terminal would act on is written out."""
    click.echo("\n".join(map(_cut, visible(text, keep="\n").split("\n"))), err=True)


def _cut(line: str) -> str:
    """A line without the middle of what is long: a message may quote a value of any length."""
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[: LONGEST_LINE // 4]} [...] {line[-LONGEST_LINE // 8 :]}"


class Progress:
    """A bar on stderr that overwrites itself; on a terminal only, never during a timed sample."""

    def __init__(self, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._estimate = ""
        self._told: Shown = {}

    def tell(self, phase: str, done: int, most: int) -> None:
        """`done` of at most `most` steps of `phase` are complete."""
        if not self._shown:
            return
        filled = BAR_WIDTH * max(0, done) // max(1, most)
        bar = "#" * filled + "-" * (BAR_WIDTH - filled)
        count = "warm-up" if done < 0 else f"{done}/{most}"
        self._write(f"{phase} [{bar}] {count}{self._estimate}")

    def estimate(self, text: str) -> None:
        """What is known so far, shown behind the bar."""
        self._estimate = f"  {text}"

    def tell_lines(self, record: RunRecord, verbose: bool) -> None:
        """What is new in a record, above the bar; each line stays."""
        if not self._shown:
            return
        from ckptcli.report.progress_lines import new_lines

        lines, self._told = new_lines(record, self._told, verbose)
        for line in lines:
            self._write(f"{visible(line)}\n")

    def end(self) -> None:
        """Clear the line."""
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        stays = text.endswith("\n")
        shown = text if stays else text[: shutil.get_terminal_size().columns - 1]
        shown = visible(shown, keep="\n")
        click.echo(f"\r\x1b[K{shown}", err=True, nl=False)
