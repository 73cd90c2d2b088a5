"""The burn.toml that a command works with, and the log sinks that it asks for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

import click

from ckptcli.config import LoggerSettings, find_config, read_config_file
from ckptcli.events import Level
from ckptcli.report.log_sinks import LogSink, configure_python_logger, log_sink


def logger_settings(config_path: Path | None) -> LoggerSettings:
    """Settings of the file named by `--config`, else of the nearest burn.toml upward.

    A malformed file met in the search is reported on stderr and passed over.

    Raises:
        ConfigError: the named file is absent or wrong.
    """
    if config_path is not None:
        return read_config_file(config_path)
    found = find_config(Path())
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
    sink = log_sink(settings, stdout=stdout, stderr=sys.stderr, level=level)
    if settings.log is not None:
        configure_python_logger(sys.stderr)
    return [] if sink is None else [sink]
