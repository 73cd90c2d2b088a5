"""Where the log of a backward pass goes beside the screen: the sinks of `[autodiff.logger]`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from ckptcli.config import LoggerSettings
from ckptcli.events import Level

if TYPE_CHECKING:
    from ckptcli.report.log_sinks import LogSink


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
