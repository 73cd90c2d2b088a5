"""The burn.toml of a command, and the defaults for options that its table `[ckpt]` gives.

One file a command is read: the one that is named, else the nearest upward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ckptcli.cli.click_options import type_of
from ckptcli.cli.streams import note, say, warn
from ckptcli.config import (
    Defaults,
    FoundConfig,
    WrongValue,
    as_trusted,
    find_config,
    logger_section,
    named_config,
    read_defaults,
    wrong_value,
)
from ckptcli.config.toml_file import MOST_SHOWN_BITS
from ckptcli.errors import ConfigError
from ckptcli.options.option import Option


def found_config(name: str | None, options: Mapping[str, Option]) -> FoundConfig:
    """The file of that name, else what the nearest upward may set; `options` by key.

    Malformed ones met there are told on stderr, and so is what a file may not set.

    Raises:
        ConfigError: the named file is absent or wrong.
    """
    found = named_config(Path(name)) if name else find_config(Path())
    for report in found.reports:
        say(report)
    trusted, refusals = as_trusted(found, options)
    warn(refusals)
    return trusted


def tell_what_is_set(found: FoundConfig, keys: Sequence[str], logs: bool) -> None:
    """Say on stderr which of the `[ckpt]` keys apply that come from a file that nobody named."""
    if found.named or found.path is None:
        return
    section = logger_section(found.document) if logs and found.settings.level else {}
    settings = [*keys, *(f"autodiff.logger.{key}" for key in section)]
    if settings:
        note(f"{found.path} sets {', '.join(settings)}")


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
    too_large = f"which is larger than `{option.flag}` can be"
    if isinstance(value, int) and value.bit_length() > MOST_SHOWN_BITS:
        return wrong_value(option.key, value, too_large, "see `ckpt run --help`")
    try:
        for item in value if isinstance(value, list) else [value]:
            type_of(option).convert(item, None, None)
    except click.BadParameter as error:
        complaint = f"which `{option.flag}` does not take: {error.message.rstrip('.')}"
        return wrong_value(option.key, value, complaint, "see `ckpt run --help`")
    except OverflowError:  # an integer of TOML has no bound
        return wrong_value(option.key, value, too_large, "see `ckpt run --help`")
    return None
