"""burn.toml: find it, read it, check it.

Invariants: a file that is wrong anywhere in what is read here gives no settings at all, never half
of them; a file named by the user ends in settings or in an error, while a file met in the search
ends in settings or in a report, and the search goes on.

Source: Burn 0.22.1, `burn-std/src/config/{autodiff,base}.rs`, and CubeCL, on which it stands,
`cubecl-environment/src/config/{logger,mod}.rs`: keys and defaults from the one, search from the
other.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ckptcli.errors import ConfigError, nearest_name
from ckptcli.events import Level

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAMES = ("burn.toml", "Burn.toml")
"""What the search tries in each directory, in this order."""

LEVELS = {level.name.lower(): level for level in Level}
"""The values of `level`, by the word in the file; lower case only."""

LOGGER_LEVELS = ("info", "debug", "trace")
"""The values of `log`."""

_Table: TypeAlias = Mapping[str, object]


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


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """What the search found.

    Attributes:
        settings: those of `path`, or the defaults.
        path: the file that was read; None if no directory has a valid one.
        reports: a line for each malformed file that was passed over, in the order of the search.
    """

    settings: LoggerSettings
    path: Path | None
    reports: tuple[str, ...]


class _WrongConfig(Exception):
    """The text is no valid configuration. `reason` has the key and the value, not the file."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return self.reason if self.hint is None else f"{self.reason}; {self.hint}"


def read_config_file(path: Path) -> LoggerSettings:
    """The settings in a file that the user named.

    Raises:
        ConfigError: the file is absent, unreadable, not UTF-8, not TOML, or has a wrong value.
    """
    try:
        return _parse(_read(path))
    except FileNotFoundError:
        raise ConfigError(
            f"config file `{path}` does not exist", "give the path of a burn.toml"
        ) from None
    except OSError as error:
        raise ConfigError(f"config file `{path}` cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"config file `{path}` is not UTF-8 text: byte {error.start} is wrong",
            "save it as UTF-8",
        ) from error
    except _WrongConfig as wrong:
        raise ConfigError(f"config file `{path}`: {wrong.reason}", wrong.hint) from None


def find_config(start: Path) -> FoundConfig:
    """The settings of the first valid file from `start` upward to the root, or the defaults.

    A file that cannot be read is passed over in silence, a malformed one with a report. Any valid
    file ends the search, even one that is empty.
    """
    reports: list[str] = []
    for path in _candidates(start):
        try:
            return FoundConfig(_parse(_read(path)), path, tuple(reports))
        except (OSError, UnicodeDecodeError):
            continue
        except _WrongConfig as wrong:
            reports.append(
                f"cubecl config: Ignoring {_debug_quoted(path)}, "
                f"which doesn't have the right format => {wrong}"
            )
    return FoundConfig(LoggerSettings(), None, tuple(reports))


def _candidates(start: Path) -> Iterator[Path]:
    """Every path that the search may read, in its order."""
    try:
        directory = Path(os.path.abspath(start))
    except OSError:  # the working directory was removed
        return
    for parent in (directory, *directory.parents):
        first, second = (parent / name for name in FILE_NAMES)
        yield first
        if not _is_same_file(first, second):
            yield second


def _is_same_file(first: Path, second: Path) -> bool:
    """Where case does not matter both names are one file, which is to be reported once."""
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False


def _read(path: Path) -> str:
    # TOML allows a byte order mark, which Python's parser does not take.
    return path.read_bytes().decode("utf-8-sig")


def _parse(text: str) -> LoggerSettings:
    """The settings that `text` gives; sections and keys of others are not looked at."""
    autodiff = _section(_parse_toml(text), "autodiff", "autodiff")
    logger = _section(autodiff, "logger", "autodiff.logger")
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


def _parse_toml(text: str) -> _Table:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _WrongConfig(_syntax_reason(str(error), text)) from None
    except (ValueError, RecursionError):  # the parser does not turn these into errors of its own
        raise _WrongConfig("not readable TOML: a value is too large or nested too deep") from None


def _syntax_reason(message: str, text: str) -> str:
    """The parser's message with the place in front of it."""
    what, _, place = message.removesuffix(")").rpartition(" (at ")
    if not what:
        return f"not valid TOML: {message}"
    if not re.fullmatch(r"line \d+, column \d+", place):  # "end of document"
        place = f"line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))}"
    return f"not valid TOML at {place}: {what}"


def _section(parent: _Table, name: str, key: str) -> _Table:
    value = parent.get(name, {})
    if not isinstance(value, dict):
        raise _WrongConfig(f"`{key}` is {_shown(value)}, not a table", f"write `[{key}]`")
    return value


def _boolean(logger: _Table, name: str, *, default: bool) -> bool:
    value = logger.get(name, default)
    if not isinstance(value, bool):
        raise _wrong_value(name, value, "not a boolean", "write `true` or `false`, without quotes")
    return value


def _string(logger: _Table, name: str) -> str | None:
    value = logger.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong_value(name, value, "not a string", "write it in quotes")
    return value


def _choice(logger: _Table, name: str, allowed: tuple[str, ...]) -> str | None:
    value = logger.get(name)
    if value is None or (isinstance(value, str) and value in allowed):
        return value
    nearest = nearest_name(value, allowed) if isinstance(value, str) else None
    hint = f'did you mean "{nearest}"?' if nearest else None
    known = ", ".join(f'"{word}"' for word in allowed)
    raise _wrong_value(name, value, f"expected one of {known}", hint)


def _wrong_value(name: str, value: object, complaint: str, hint: str | None) -> _WrongConfig:
    return _WrongConfig(f"`autodiff.logger.{name}` is {_shown(value)}, {complaint}", hint)


def _shown(value: object) -> str:
    """`value` as it stands in the file, or what it is where that is long."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def _debug_quoted(path: Path) -> str:
    """`path` as Rust prints it for debugging: in quotes, with everything unprintable escaped."""
    return f'"{"".join(map(_debug_escaped, str(path)))}"'


def _debug_escaped(character: str) -> str:
    if character in '\\"':
        return f"\\{character}"
    if character in "\n\r\t\0":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}[character]
    if character.isprintable():
        return character
    code = ord(character)
    is_undecoded_byte = 0xDC80 <= code <= 0xDCFF
    return f"\\x{code - 0xDC00:02X}" if is_undecoded_byte else f"\\u{{{code:x}}}"
