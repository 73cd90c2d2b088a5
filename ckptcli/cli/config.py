"""`ckpt config`: the effective settings and where each comes from."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import Any

import click
from click.core import ParameterSource

from ckptcli.cli.run import command as run
from ckptcli.cli.settings import (
    NO_SETTINGS,
    SettingsCommand,
    found_config,
    key_of,
    options_of,
    unknown_variables,
    variable_of,
)
from ckptcli.cli.streams import warn
from ckptcli.config import FoundConfig, logger_section
from ckptcli.events import Level

SCHEMA = "ckpt.config/1"
NOT_LISTED = (*NO_SETTINGS, "json")
LOGGER = "autodiff.logger"

_ORIGINS = {
    ParameterSource.COMMANDLINE: "flag",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A key with its effective value. `source` says more of the origin: a flag, a variable."""

    key: str
    value: object
    origin: str
    source: str | None = None


@click.command("config", cls=SettingsCommand, params=list(run.params))
@click.pass_context
def command(ctx: click.Context, /, quiet: bool, as_json: bool, **_: Any) -> None:
    """Print the settings that `ckpt run` would use with these options, and where each comes from.

    Precedence: flag, then environment (CKPT_LAYERS for --layers), then the table [ckpt] of the
    burn.toml, then default. The output is a burn.toml.
    """
    found = found_config(ctx)
    settings = [_setting(ctx, option) for option in options_of(ctx.command)]
    listed = [setting for setting in settings if setting.key not in NOT_LISTED]
    logger = _logger_settings(found)
    click.echo(_json(found, listed, logger) if as_json else _toml(found, listed, logger))
    warn(unknown_variables(), quiet)


def _setting(ctx: click.Context, option: click.Option) -> Setting:
    key = key_of(option)
    source = ctx.get_parameter_source(str(option.name))
    origin = "default" if source is None else _ORIGINS.get(source, "default")
    sources = {"flag": f"--{key}", "environment": variable_of(option)}
    return Setting(key, _plain(ctx.params[str(option.name)]), origin, sources.get(origin))


def _plain(value: object) -> object:
    """The value as data; an option that was not given at all is None."""
    if isinstance(value, tuple):
        return list(value) or None
    return value if isinstance(value, str | int | float | None) else str(value)


def _logger_settings(found: FoundConfig) -> list[Setting]:
    given = logger_section(found.document)
    return [
        Setting(field.name, _logger_value(found, field.name), _origin(field.name in given))
        for field in fields(found.settings)
    ]


def _logger_value(found: FoundConfig, name: str) -> object:
    value = getattr(found.settings, name)
    return value.name.lower() if isinstance(value, Level) else _plain(value)


def _origin(in_file: bool) -> str:
    return "file" if in_file else "default"


def _json(found: FoundConfig, settings: list[Setting], logger: list[Setting]) -> str:
    data = {
        "schema": SCHEMA,
        "file": None if found.path is None else str(found.path),
        "settings": {setting.key: _object(setting) for setting in settings},
        "logger": {setting.key: _object(setting) for setting in logger},
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _object(setting: Setting) -> dict[str, object]:
    value = setting.value
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)  # JSON has no number for it
    return {"value": value, "origin": setting.origin, "source": setting.source}


def _toml(found: FoundConfig, settings: list[Setting], logger: list[Setting]) -> str:
    place = "no burn.toml found" if found.path is None else f"file: {found.path}"
    lines = [f"# {place}", "[ckpt]", *_lines(settings), "", f"[{LOGGER}]", *_lines(logger)]
    return "\n".join(lines)


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
    """JSON's strings, numbers and lists are TOML's, but for one control character."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
