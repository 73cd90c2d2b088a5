"""Options as words of a command line: for a child process, and for a reader who measures again.

Invariant: parsing the words of a child gives the values that they were made of, but for options
that declare why not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ckptcli.options.option import Option


def child_words(options: Sequence[Option], values: Mapping[str, Any]) -> list[str]:
    """The words that give a child process, which has no settings of its own, these values."""
    return [
        word
        for option in options
        if not option.not_in_child and values[option.name] != option.default
        for word in _words(option, values[option.name])
    ]


def reproduction_words(options: Sequence[Option], values: Mapping[str, Any]) -> list[str]:
    """The words that measure the same again; an option that `values` lacks is not named.

    Defaults are named too: a burn.toml may change them.
    """
    return [
        word
        for option in options
        if not option.not_reproduced and option.name in values
        if not (option.named_if_changed and values[option.name] == option.default)
        for word in _words(option, values[option.name])
    ]


def _words(option: Option, value: Any) -> list[str]:
    if value is None:
        return []
    if option.kind == "boolean":
        return [option.flag] if value else []
    if option.kind == "strings":
        return [word for item in value for word in (option.flag, str(item))]
    if option.kind == "pair":
        return [option.flag, *map(str, value)]
    return [option.flag, str(value)]
