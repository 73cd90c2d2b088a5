"""The burn.toml of a command, and the defaults for options that its table `[ckpt]` gives.

One file a command is read: the one that is named, else the nearest upward.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from ckptcli.cli.click_options import type_of
from ckptcli.config import (
    Defaults,
    FoundConfig,
    LoggerSettings,
    WrongValue,
    find_config,
    named_config,
    read_defaults,
    wrong_value,
)
from ckptcli.errors import ConfigError
from ckptcli.options.option import Option


def found_config(name: str | None) -> FoundConfig:
    """The file of that name, else the nearest upward; malformed ones met there are told on stderr.

    Raises:
        ConfigError: the named file is absent or wrong.
    """
    found = named_config(Path(name)) if name else find_config(Path())
    for report in found.reports:
        click.echo(report, err=True)
    return found


def settings_from_above(found: FoundConfig, changed: Mapping[str, object]) -> Iterator[str]:
    """What a file changed that the search found in a directory above; `changed` is what it set."""
    if found.path is None or found.named or found.path.parent == Path(os.path.abspath(".")):
        return
    named = [f"{key} = {_shown(value)}" for key, value in changed.items()]
    if found.settings != LoggerSettings():
        named.append("the logger")
    if named:
        yield f"{found.path}, found above this directory, sets {', '.join(named)}"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def checked_defaults(found: FoundConfig, options: Mapping[str, Option]) -> Defaults:
    """The `[ckpt]` table of a file, every value one that its option takes; `options` by key.

    Raises:
        ConfigError: a wrong value in a file that the user named.
    """
    if "ckpt" not in found.document:
        return Defaults({}, (), ())
    read = read_defaults(found.document, {key: of.kind for key, of in options.items()})
    wrong = {
        key: complaint
        for key, value in read.values.items()
        if (complaint := _refused(options[key], value)) is not None
    }
    if found.named:
        for first in (*read.wrong, *wrong.values()):
            raise ConfigError(f"config file `{found.path}`: {first.reason}", first.hint)
    kept = {key: value for key, value in read.values.items() if key not in wrong}
    return Defaults(kept, read.unknown, (*read.wrong, *wrong.values()))


def _refused(option: Option, value: object) -> WrongValue | None:
    """Why the option does not take a value of the right type, if it does not."""
    try:
        for item in value if isinstance(value, list) else [value]:
            type_of(option).convert(item, None, None)
    except click.BadParameter as error:
        complaint = f"which `{option.flag}` does not take: {error.message.rstrip('.')}"
        return wrong_value(option.key, value, complaint, "see `ckpt run --help`")
    return None
