"""Where the lines of the log go: a file, standard output, standard error, a Python logger.

Invariants: every target gets every line, in this order, with nothing before it and one newline
after it; a target has its line before the engine goes on; without lines no file is touched. Only
where several passes go to one sink each has a heading.

Source: Burn 0.22.1, `burn-std/src/config/logger.rs`, and CubeCL, on which it stands,
`cubecl-environment/src/config/logger.rs`. Unlike there, `append = false` empties the file; Burn
writes over the first bytes of an older one and leaves the rest.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from ckptcli.errors import LogFileError
from ckptcli.events import Event, Level
from ckptcli.report.closing import Closing
from ckptcli.report.log import burn_line

if TYPE_CHECKING:  # config stands above report: the type is named here, the module never loaded
    from ckptcli.config import LoggerSettings

LOGGER_NAME = "burn.autodiff"
"""Burn's log target `burn::autodiff`, in Python's spelling."""

TRACE = 5
"""Python has no trace level; this one is below debug."""

_HANDLER_NAME = "ckpt-log-lines"
_LOGGER_LEVELS = {"info": logging.INFO, "debug": logging.DEBUG, "trace": TRACE}


class Target(Protocol):
    """One place that lines go to."""

    def write(self, line: str) -> None:
        """Write `line` and a newline, and keep nothing back."""

    def close(self) -> None:
        """Release what the target opened itself."""


class FileTarget:
    """A file, opened at the first line; its directories are made then as well."""

    def __init__(self, path: Path, *, append: bool) -> None:
        self._path = path
        self._mode: Literal["a", "w"] = "a" if append else "w"
        self._file: TextIO | None = None

    def write(self, line: str) -> None:
        """Write one line.

        Raises:
            LogFileError: the file cannot be opened or written.
        """
        try:
            if self._file is None:
                self._file = self._open()
            self._file.write(f"{line}\n")
            self._file.flush()
        except (OSError, ValueError) as error:  # ValueError: a name that the system cannot write
            self.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise LogFileError(
                f"log file `{self._path}` cannot be written: {reason}",
                "change `autodiff.logger.file` in the burn.toml in use",
            ) from error

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            # Every line was flushed: only one whose failure is already known can fail again.
            with contextlib.suppress(OSError):
                file.close()

    def _open(self) -> TextIO:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open(self._mode, encoding="utf-8", newline="\n")
        self._mode = "a"  # opened again, the lines of this run stay
        return file


class StreamTarget:
    """A stream that someone else opened and closes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()  # so that lines on two streams keep their order

    def close(self) -> None:
        """Leave the stream open: it belongs to whoever opened it."""


class LoggerTarget:
    """The Python logger `burn.autodiff`, at one level for all lines."""

    def __init__(self, level: str) -> None:
        logging.addLevelName(TRACE, "TRACE")
        self._level = _LOGGER_LEVELS[level]
        self._logger = logging.getLogger(LOGGER_NAME)

    def write(self, line: str) -> None:
        self._logger.log(self._level, line)

    def close(self) -> None:
        """Leave the logger alone: its handlers belong to the program."""


class LogSink(Closing):
    """Writes the log of a pass to its targets, in their order; closes them as a context manager."""

    def __init__(self, targets: tuple[Target, ...], level: Level) -> None:
        self.targets = targets
        self.level = level
        self._heading = ""

    def begin(self, heading: str) -> None:
        """Write `heading` above the next line, where several passes go to one sink; "" for none."""
        self._heading = heading

    def emit(self, event: Event) -> None:
        """Write the line of `event`, if it has one at this level.

        Raises:
            LogFileError: the log file cannot be opened or written.
        """
        line = burn_line(event, self.level)
        if line is None:
            return
        if self._heading:
            self._write(self._heading)
            self._heading = ""
        self._write(line)

    def _write(self, line: str) -> None:
        for target in self.targets:
            target.write(line)

    def close(self) -> None:
        """Close the log file, if one was opened."""
        for target in self.targets:
            target.close()


def log_sink(
    settings: LoggerSettings, *, stdout: TextIO, stderr: TextIO, level: Level | None = None
) -> LogSink | None:
    """The sink that `settings` ask for; None where nothing would be written.

    `level`, if given, is used instead of that of the settings.
    """
    wanted = settings.level if level is None else level
    if wanted == Level.DISABLED:
        return None
    targets = tuple(_targets(settings, stdout, stderr))
    return LogSink(targets, wanted) if targets else None


def _targets(settings: LoggerSettings, stdout: TextIO, stderr: TextIO) -> Iterator[Target]:
    if settings.file is not None:
        yield FileTarget(settings.file, append=settings.append)
    if settings.stdout:
        yield StreamTarget(stdout)
    if settings.stderr:
        yield StreamTarget(stderr)
    if settings.log is not None:
        yield LoggerTarget(settings.log)


def configure_python_logger(stream: TextIO) -> None:
    """Make the lines of the Python logger visible on `stream`, each as it is.

    A handler that someone else attached stays the only one, and the logger's level is then left as
    it is; a handler that an earlier call attached is moved to `stream`.
    """
    logger = logging.getLogger(LOGGER_NAME)
    for handler in logger.handlers:
        if handler.name == _HANDLER_NAME and isinstance(handler, logging.StreamHandler):
            handler.setStream(stream)
    if not logger.handlers:
        added = logging.StreamHandler(stream)
        added.name = _HANDLER_NAME
        added.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(added)
        logger.setLevel(TRACE)
