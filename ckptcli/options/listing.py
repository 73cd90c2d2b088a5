"""The list of a command's options, and the options object from values and back.

Invariant: `values_of(built(cls, values)) == values`, for values that name every option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from ckptcli.options.group import Group, Member, Options
from ckptcli.options.option import Option


def options_of(cls: type[Options]) -> tuple[Option, ...]:
    """Every option of a group, or of a command, in order."""
    hashable: Any = cls  # as a class is; type checkers look at its objects
    return _listed(hashable)


@cache
def _listed(cls: Any) -> tuple[Option, ...]:
    found = tuple(_walked(cls, {}))
    names = [option.name for option in found]
    keys = [option.key for option in found]
    assert len(set(names)) == len(names), f"{cls}: a name stands for two options"
    assert len(set(keys)) == len(keys), f"{cls}: a flag stands for two options"
    return found


def _walked(cls: type[Options], changes: Mapping[str, Mapping[str, Any]]) -> Iterator[Option]:
    for name, of in cls.fields.items():
        if isinstance(of, Group):
            yield from _walked(of.cls, {**of.changes, **changes})
        else:
            yield replace(of, **changes[name]) if name in changes else of


def built(cls: type[Member], values: Mapping[str, Any]) -> Member:
    """The options with these values, by name; an option that `values` lacks has its default."""
    defaults = {option.name: option.default for option in options_of(cls)}
    return _built(cls, {**defaults, **values})


def _built(cls: type[Member], values: Mapping[str, Any]) -> Member:
    arguments = {
        name: _built(of.cls, values) if isinstance(of, Group) else values[name]
        for name, of in cls.fields.items()
    }
    return cls(**arguments)


def values_of(options: Options) -> dict[str, Any]:
    """Name -> value of every option, in order."""
    found: dict[str, Any] = {}
    for name, of in options.fields.items():
        value = getattr(options, name)
        found.update(values_of(value) if isinstance(of, Group) else {name: value})
    return found


def changed(options: Member, **values: Any) -> Member:
    """The options with these values, by name, and the others as they are."""
    return built(type(options), {**values_of(options), **values})


def settings_of(commands: Iterable[type[Options]]) -> dict[str, Option]:
    """What a burn.toml and the environment can set: long name -> an option that has it."""
    return {
        option.key: option
        for cls in commands
        for option in options_of(cls)
        if not option.not_in_settings
    }
