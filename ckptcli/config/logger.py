"""The section `[autodiff.logger]`.

Source: Burn 0.22.1, `burn-std/src/config/autodiff.rs`, and CubeCL, on which it stands,
`cubecl-environment/src/config/logger.rs`: keys and defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ckptcli.config.toml_file import NULL, Table, WrongConfig, section, shown
from ckptcli.errors import nearest_name
from ckptcli.events import Level

LEVELS = {level.name.lower(): level for level in Level}
"""The values of `level`, by the word in the file; lower case only."""

LOGGER_LEVELS = ("info", "debug", "trace")
"""The values of `log`."""


@dataclass(frozen=True, slots=True)
class LoggerSettings:
    """The section `[autodiff.logger]`; the defaults are Burn's.

    Attributes:
        level: how much is logged; at `DISABLED` nothing is, whatever the other keys say.
        file: the log file, relative to the working directory of the process; None for none.
        append: whether lines are added to what the file has, or replace it.
        stdout: whether lines go to standard output.
        stderr: whether lines go to standard error.
        log: the level at which lines go to the Python logger, one of `LOGGER_LEVELS`.
    """

    level: Level = Level.DISABLED
    file: Path | None = None
    append: bool = True
    stdout: bool = False
    stderr: bool = False
    log: str | None = None


def parse_logger(document: Table) -> LoggerSettings:
    """The settings in a burn.toml; sections and keys of others are not looked at.

    Raises:
        WrongConfig: a wrong value.
    """
    logger = logger_section(document)
    level = _choice(logger, "level", tuple(LEVELS))
    file = _string(logger, "file")
    return LoggerSettings(
        level=LEVELS[level or "disabled"],
        file=None if file is None else Path(file),
        append=_boolean(logger, "append", default=True),
        stdout=_boolean(logger, "stdout", default=False),
        stderr=_boolean(logger, "stderr", default=False),
        log=_choice(logger, "log", LOGGER_LEVELS),
    )


def logger_section(document: Table) -> Table:
    """The section as it stands in the file."""
    return section(section(document, "autodiff", "autodiff"), "logger", "autodiff.logger")


def _boolean(logger: Table, name: str, *, default: bool) -> bool:
    value = logger.get(name, default)
    if not isinstance(value, bool):
        raise _wrong_value(name, value, "not a boolean", "write `true` or `false`, without quotes")
    return value


def _string(logger: Table, name: str) -> str | None:
    value = logger.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong_value(name, value, "not a string", "write it in quotes")
    if value is not None and NULL in value:
        raise _wrong_value(name, value, "which has a null character", "no path can have one")
    return value


def _choice(logger: Table, name: str, allowed: tuple[str, ...]) -> str | None:
    value = logger.get(name)
    if value is None or (isinstance(value, str) and value in allowed):
        return value
    nearest = nearest_name(value, allowed) if isinstance(value, str) else None
    hint = f'did you mean "{nearest}"?' if nearest else None
    known = ", ".join(f'"{word}"' for word in allowed)
    raise _wrong_value(name, value, f"expected one of {known}", hint)


def _wrong_value(name: str, value: object, complaint: str, hint: str | None) -> WrongConfig:
    return WrongConfig(f"`autodiff.logger.{name}` is {shown(value)}, {complaint}", hint)
