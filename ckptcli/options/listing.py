"""The list of a command's options, and the options object from values and back.

Invariant: `values_of(built(cls, values)) == values`, for values that name every option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, fields, replace
from functools import cache
from typing import Any, TypeVar

from ckptcli.options.option import CHANGES, GROUP, OPTION, Option, declared

Options = TypeVar("Options")


def options_of(cls: Any) -> tuple[Option, ...]:
    """Every option of a group, or of a command, which are classes, in order."""
    return _listed(cls)


@cache
def _listed(cls: Any) -> tuple[Option, ...]:
    found = tuple(_walked(cls, {}))
    names = [option.name for option in found]
    keys = [option.key for option in found]
    assert len(set(names)) == len(names), f"{cls}: a name stands for two options"
    assert len(set(keys)) == len(keys), f"{cls}: a flag stands for two options"
    return found


def _walked(cls: Any, changes: Mapping[str, Mapping[str, Any]]) -> Iterator[Option]:
    for of in _fields(cls):
        if OPTION in of.metadata:
            yield replace(declared(of), **changes.get(of.name, {}))
        else:
            yield from _walked(of.metadata[GROUP], {**of.metadata[CHANGES], **changes})


def _fields(cls: Any) -> tuple[Field[Any], ...]:
    return fields(cls)


def built(cls: type[Options], values: Mapping[str, Any]) -> Options:
    """The options with these values, by name; an option that `values` lacks has its default."""
    defaults = {option.name: option.default for option in options_of(cls)}
    return _built(cls, {**defaults, **values})


def _built(cls: type[Options], values: Mapping[str, Any]) -> Options:
    arguments = {
        of.name: values[of.name] if OPTION in of.metadata else _built(of.metadata[GROUP], values)
        for of in _fields(cls)
    }
    return cls(**arguments)


def values_of(options: Any) -> dict[str, Any]:
    """Name -> value of every option, in order."""
    found: dict[str, Any] = {}
    for of in _fields(type(options)):
        value = getattr(options, of.name)
        found.update({of.name: value} if OPTION in of.metadata else values_of(value))
    return found


def settings_of(commands: Iterable[type]) -> dict[str, Option]:
    """What a burn.toml and the environment can set: long name -> an option that has it."""
    return {
        option.key: option
        for cls in commands
        for option in options_of(cls)
        if not option.not_in_settings
    }
