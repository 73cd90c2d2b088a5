"""Where options get their values: flag > `CKPT_*` environment > burn.toml > default.

`SettingsCommand` is the class of every command that takes part. It reads one burn.toml a command:
the one that `--config` names, else the nearest upward; `[ckpt]` gives defaults for options,
`[autodiff.logger]` is for the log sinks.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.core import ParameterSource

from ckptcli.cli.streams import warn
from ckptcli.config import (
    Defaults,
    FoundConfig,
    Kind,
    LoggerSettings,
    WrongValue,
    find_config,
    named_config,
    read_defaults,
    wrong_value,
)
from ckptcli.errors import ConfigError, nearest_name
from ckptcli.events import Level

if TYPE_CHECKING:
    from ckptcli.report.log_sinks import LogSink

PREFIX = "CKPT_"
COMMANDS = ("run", "log", "compare", "show")
"""The commands whose options may stand in `[ckpt]` and in the environment."""

NO_SETTINGS = ("config",)
"""Options that no file can set."""

_META = "ckptcli.settings"


class SettingsCommand(click.Command):
    """A command whose options take defaults from the environment and from a burn.toml."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        for option in options_of(self):
            option.envvar = variable_of(option)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        notes: Sequence[str] = ()
        if not ctx.resilient_parsing:
            notes = self._take_defaults(ctx, args)
        try:
            rest = super().parse_args(ctx, args)
        except click.BadParameter as error:
            _name_the_variable(error, ctx)
            raise
        warn(notes, quiet=bool(ctx.params.get("quiet")))
        return rest

    def _take_defaults(self, ctx: click.Context, args: Sequence[str]) -> Sequence[str]:
        """Give `ctx` the defaults of the burn.toml; returns warnings."""
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        help_option = self.get_help_option(ctx)
        if help_option is not None and help_option.name in given:
            return ()
        name = given.get("config_path") or os.environ.get(_variable("config"))
        found = named_config(Path(str(name))) if name else find_config(Path())
        ctx.meta[_META] = found
        for report in found.reports:
            click.echo(report, err=True)
        defaults = checked_defaults(found)
        own = {key_of(option): str(option.name) for option in options_of(self)}
        ctx.default_map = {own[key]: value for key, value in defaults.values.items() if key in own}
        return [
            f"{found.path}: {text}"
            for text in (*defaults.unknown, *(f"{w.reason}; {w.hint}" for w in defaults.wrong))
        ]


def options_of(command: click.Command) -> list[click.Option]:
    """The options of a command that the environment can set."""
    return [p for p in command.params if isinstance(p, click.Option)]


def key_of(option: click.Option) -> str:
    """The long name without dashes in front: what a burn.toml calls the option."""
    return max(option.opts, key=len).lstrip("-")


def variable_of(option: click.Option) -> str:
    """The environment variable of an option, `CKPT_MAX_TIME`."""
    return _variable(key_of(option))


def _variable(key: str) -> str:
    return PREFIX + key.replace("-", "_").upper()


def found_config(ctx: click.Context) -> FoundConfig:
    """The burn.toml that the command of `ctx` works with."""
    found = ctx.meta[_META]
    assert isinstance(found, FoundConfig)
    return found


def checked_defaults(found: FoundConfig) -> Defaults:
    """The `[ckpt]` table of a file, every value one that its option takes.

    Raises:
        ConfigError: a wrong value in a file that the user named.
    """
    if "ckpt" not in found.document:
        return Defaults({}, (), ())
    options = _known_options()
    read = read_defaults(found.document, {key: _kind(option) for key, option in options.items()})
    wrong = {
        key: complaint
        for key, value in read.values.items()
        if (complaint := _refused(key, options[key], value)) is not None
    }
    if found.named:
        for first in (*read.wrong, *wrong.values()):
            raise ConfigError(f"config file `{found.path}`: {first.reason}", first.hint)
    kept = {key: value for key, value in read.values.items() if key not in wrong}
    return Defaults(kept, read.unknown, (*read.wrong, *wrong.values()))


def unknown_variables() -> Iterator[str]:
    """A sentence for each `CKPT_*` variable that is set and stands for no option."""
    keys = {_variable(key): key for key in (*_known_options(), "config")}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in keys:
            written = name.removeprefix(PREFIX).replace("_", "-")
            nearest = nearest_name(written, keys.values())
            hint = f"; did you mean `{_variable(nearest)}`?" if nearest else ""
            yield f"environment variable `{name}` is no setting{hint}"


def _known_options() -> dict[str, click.Option]:
    """Every key that a burn.toml may have, with an option that it stands for."""
    commands = [importlib.import_module(f"ckptcli.cli.{name}").command for name in COMMANDS]
    return {
        key_of(option): option
        for command in commands
        for option in options_of(command)
        if key_of(option) not in NO_SETTINGS
    }


def _kind(option: click.Option) -> Kind:
    """What the option takes, as a TOML type."""
    if option.is_flag:
        return "boolean"
    if option.multiple:
        return "strings"
    if isinstance(option.type, click.types.IntParamType):
        return "integer"
    return "number" if isinstance(option.type, click.types.FloatParamType) else "string"


def _refused(key: str, option: click.Option, value: object) -> WrongValue | None:
    """Why the option does not take a value of the right type, if it does not."""
    try:
        for item in value if isinstance(value, list) else [value]:
            option.type.convert(item, option, None)
    except click.BadParameter as error:
        complaint = f"which `--{key}` does not take: {error.message.rstrip('.')}"
        return wrong_value(key, value, complaint, "see `ckpt run --help`")
    return None


def _name_the_variable(error: click.BadParameter, ctx: click.Context) -> None:
    """Have the message name the environment variable where the value comes from one."""
    option = error.param
    if not isinstance(option, click.Option) or option.name is None:
        return
    if ctx.get_parameter_source(option.name) is ParameterSource.ENVIRONMENT:
        error.param_hint = f"environment variable {variable_of(option)}"


def logger_settings(config_path: Path | None) -> LoggerSettings:
    """The logger's settings in the burn.toml of the running command.

    Outside a command: those of `config_path`, else of the nearest burn.toml upward; a malformed
    file met in the search is reported on stderr and passed over.

    Raises:
        ConfigError: the named file is absent or wrong.
    """
    ctx = click.get_current_context(silent=True)
    if ctx is not None and _META in ctx.meta:
        return found_config(ctx).settings
    found = named_config(config_path) if config_path is not None else find_config(Path())
    for report in found.reports:
        click.echo(report, err=True)
    return found.settings


def open_log_sink(
    settings: LoggerSettings, stdout: TextIO, level: Level | None = None
) -> list[LogSink]:
    """The sink of an enabled configuration, or none; `level` overrides the configuration's.

    Lines for the Python logger are shown on stderr, since a command has no other handler.
    """
    if settings.level is Level.DISABLED:
        return []
    from ckptcli.report.log_sinks import configure_python_logger, log_sink

    sink = log_sink(settings, stdout=stdout, stderr=sys.stderr, level=level)
    if settings.log is not None:
        configure_python_logger(sys.stderr)
    return [] if sink is None else [sink]
