"""`ckpt config`: the effective settings and where each comes from."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.json_output import json_text
from ckptcli.options.listing import values_of
from ckptcli.options.variables import variable_of
from ckptcli.visible import HIDDEN, visible

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.config import FoundConfig
    from ckptcli.options.commands.run import RunOptions
    from ckptcli.options.option import Option

SCHEMA = "ckpt.config/1"
NOT_LISTED = ("json",)
"""It says how this command prints."""

LOGGER = "autodiff.logger"


@dataclass(frozen=True, slots=True)
class Setting:
    """A key with its effective value. `source` says more of the origin: a flag, a variable."""

    key: str
    value: object
    origin: str
    source: str | None = None


@options_command("config")
def command(options: RunOptions, line: Line) -> None:
    """Print the settings that `ckpt run` would use with these options, and where each comes from.

    Precedence: flag, then environment (CKPT_LAYERS for --layers), then the table [ckpt] of the
    burn.toml, then default. The output is a burn.toml.
    """
    values = values_of(options)
    settings = [
        _setting(option, values[option.name], line.origins[option.name])
        for option in line.options
        if not option.not_in_settings and option.key not in NOT_LISTED
    ]
    logger = _logger_settings(line.found)
    text = _json(line.found, settings, logger) if options.data.as_json else None
    click.echo(text or _toml(line.found, settings, logger), nl=False)


def _setting(option: Option, value: object, origin: str) -> Setting:
    from ckptcli.options.origins import ENVIRONMENT, FLAG

    sources = {FLAG: option.flag, ENVIRONMENT: variable_of(option.key)}
    return Setting(option.key, _plain(value), origin, sources.get(origin))


def _plain(value: object) -> object:
    """The value as data; an option that was not given at all is None."""
    if isinstance(value, tuple):
        return list(value) or None
    return value if isinstance(value, str | int | float | None) else str(value)


def _logger_settings(found: FoundConfig) -> list[Setting]:
    from ckptcli.config import logger_section

    given = logger_section(found.document)
    return [
        Setting(field.name, _logger_value(found, field.name), _origin(field.name in given))
        for field in fields(found.settings)
    ]


def _logger_value(found: FoundConfig, name: str) -> object:
    value = getattr(found.settings, name)
    return value.name.lower() if isinstance(value, Enum) else _plain(value)


def _origin(in_file: bool) -> str:
    from ckptcli.options.origins import DEFAULT, FILE

    return FILE if in_file else DEFAULT


def _json(found: FoundConfig, settings: list[Setting], logger: list[Setting]) -> str:
    data = {
        "schema": SCHEMA,
        "file": None if found.path is None else str(found.path),
        "settings": {setting.key: _object(setting) for setting in settings},
        "logger": {setting.key: _object(setting) for setting in logger},
    }
    return json_text(data)


def _object(setting: Setting) -> dict[str, object]:
    value = setting.value
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)  # JSON has no number for it
    return {"value": value, "origin": setting.origin, "source": setting.source}


def _toml(found: FoundConfig, settings: list[Setting], logger: list[Setting]) -> str:
    path = None if found.path is None else visible(str(found.path))
    place = "no burn.toml found" if path is None else f"file: {path}"
    lines = [f"# {place}", "[ckpt]", *_lines(settings), "", f"[{LOGGER}]", *_lines(logger)]
    return "\n".join(lines) + "\n"


def _lines(settings: list[Setting]) -> list[str]:
    """`key = value  # origin`; what has no value is a comment altogether."""
    texts = [
        f"# {setting.key} is not set"
        if setting.value is None
        else f"{setting.key} = {_toml_value(setting.value)}"
        for setting in settings
    ]
    width = max(map(len, texts))
    origins = [" ".join(filter(None, (s.origin, s.source))) for s in settings]
    return [f"{text:<{width}}  # {origin}" for text, origin in zip(texts, origins)]


def _toml_value(value: object) -> str:
    """JSON's strings, numbers and lists are TOML's; what is not seen is written as a code."""
    if isinstance(value, float):
        return repr(value)
    return re.sub(HIDDEN, _toml_code, json.dumps(value, ensure_ascii=False))


def _toml_code(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
