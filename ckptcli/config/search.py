"""Which burn.toml is read: the one that is named, or the nearest valid one upward.

Invariants: a file that is wrong anywhere in what Burn reads gives no settings at all, never half of
them; a file named by the user ends in settings or in an error, while a file met in the search ends
in settings or in a report, and the search goes on.

Source: CubeCL, on which Burn 0.22.1 stands, `cubecl-environment/src/config/mod.rs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ckptcli.config.logger import LoggerSettings, parse_logger
from ckptcli.config.toml_file import Table, WrongConfig, parse_toml, read_text
from ckptcli.errors import ConfigError

FILE_NAMES = ("burn.toml", "Burn.toml")
"""What the search tries in each directory, in this order."""


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """What was read.

    Attributes:
        settings: those of `path`, or the defaults.
        path: the file that was read; None if no directory has a valid one.
        reports: a line for each malformed file that was passed over, in the order of the search.
        document: the whole file, for sections that Burn does not have.
        named: whether the user named the file.
    """

    settings: LoggerSettings
    path: Path | None
    reports: tuple[str, ...]
    document: Table = field(default_factory=dict, compare=False, repr=False)
    named: bool = field(default=False, compare=False)


def read_config_file(path: Path) -> LoggerSettings:
    """The settings in a file that the user named.

    Raises:
        ConfigError: the file is absent, unreadable, not UTF-8, not TOML, or has a wrong value.
    """
    return named_config(path).settings


def named_config(path: Path) -> FoundConfig:
    """The file that the user named.

    Raises:
        ConfigError: the file is absent, unreadable, not UTF-8, not TOML, or has a wrong value.
    """
    try:
        return _read(path, named=True)
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
    except WrongConfig as wrong:
        raise ConfigError(f"config file `{path}`: {wrong.reason}", wrong.hint) from None


def find_config(start: Path) -> FoundConfig:
    """The settings of the first valid file from `start` upward to the root, or the defaults.

    A file that cannot be read is passed over in silence, as is what is no regular file: a named
    pipe would wait for a writer. A malformed one is passed over with a report. Any valid file ends
    the search, even one that is empty.
    """
    reports: list[str] = []
    for path in _candidates(start):
        try:
            if path.is_file():
                return _read(path, reports=reports)
        except (OSError, UnicodeDecodeError):
            continue
        except WrongConfig as wrong:
            reports.append(
                f"cubecl config: Ignoring {_debug_quoted(path)}, "
                f"which doesn't have the right format => {wrong}"
            )
    return FoundConfig(LoggerSettings(), None, tuple(reports))


def _read(path: Path, *, named: bool = False, reports: Sequence[str] = ()) -> FoundConfig:
    document = parse_toml(read_text(path))
    return FoundConfig(parse_logger(document), path, tuple(reports), document, named)


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
