"""What the terminal can show: colour, width, glyphs; and where notes go.

Colour: `--color` over NO_COLOR over FORCE_COLOR over "is it a terminal that has colour". A variable
that is set to nothing does not count.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import TextIO

import click

PIPE_WIDTH = 120
GLYPHS = "µ─"


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
        click.echo(f"warning: {message}", err=True)


def progress_line(quiet: bool) -> Callable[[str, int, int], None] | None:
    """A line on stderr that is overwritten, on a terminal only; None elsewhere."""
    if quiet or not sys.stderr.isatty():
        return None

    def show(phase: str, done: int, total: int) -> None:
        click.echo(f"\r\x1b[K{phase} {done + 1}/{total}", err=True, nl=False)

    return show


def end_progress(quiet: bool) -> None:
    """Clear the progress line."""
    if not quiet and sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
