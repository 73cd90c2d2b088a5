"""What every section of a burn.toml is read with: the text, the parser, the errors.

Invariant: whatever a file holds, reading it ends in a table or in `WrongConfig`, whose reason has
the key or the place, and not the file: only the caller knows how the file was found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

Table: TypeAlias = Mapping[str, object]

NULL = "\0"
"""TOML allows it in a string; no path, name or argument can have it."""


MOST_SHOWN_BITS = 2048
"""Python writes out no integer of more than 4300 digits, and nobody reads one of 600."""


class WrongConfig(Exception):
    """The text is no valid configuration. `reason` has the key and the value, not the file."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return self.reason if self.hint is None else f"{self.reason}; {self.hint}"


def read_text(path: Path) -> str:
    """The text of a file: UTF-8, with or without a byte order mark.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    # TOML allows a byte order mark, which Python's parser does not take.
    return path.read_bytes().decode("utf-8-sig")


def parse_toml(text: str) -> Table:
    """The table that `text` is.

    Raises:
        WrongConfig: not TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WrongConfig(_syntax_reason(str(error), text)) from None
    except (ValueError, RecursionError):  # the parser does not turn these into errors of its own
        raise WrongConfig("not readable TOML: a value is too large or nested too deep") from None


def _syntax_reason(message: str, text: str) -> str:
    """The parser's message with the place in front of it."""
    what, _, place = message.removesuffix(")").rpartition(" (at ")
    if not what:
        return f"not valid TOML: {message}"
    if not re.fullmatch(r"line \d+, column \d+", place):  # "end of document"
        place = f"line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))}"
    return f"not valid TOML at {place}: {what}"


def section(parent: Table, name: str, key: str) -> Table:
    """The table `name` of `parent`, empty if there is none; errors call it `key`.

    Raises:
        WrongConfig: it is something else than a table.
    """
    value = parent.get(name, {})
    if not isinstance(value, dict):
        raise WrongConfig(f"`{key}` is {shown(value)}, not a table", f"write `[{key}]`")
    return value


def shown(value: object) -> str:
    """`value` as it stands in the file, or what it is where that is long."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return '"{}"'.format(value.replace(NULL, "\\u0000"))
    if isinstance(value, int) and value.bit_length() > MOST_SHOWN_BITS:
        return f"an integer of {value.bit_length()} bits"
    return str(value).lower() if isinstance(value, bool) else str(value)
