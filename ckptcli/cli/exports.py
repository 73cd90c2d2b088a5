"""The files of `--export`: opened before measuring, written after every round and at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, TypeVar

import click

from ckptcli.errors import CkptError, UsageError
from ckptcli.options.output import STDOUT, ExportOptions, JsonOptions
from ckptcli.report.closing import Closing
from ckptcli.report.formats import Exporter
from ckptcli.report.output import OutputFile
from ckptcli.visible import visible

Result = TypeVar("Result")


def stdout_is_data(options: ExportOptions, data: JsonOptions) -> bool:
    """Whether stdout is for a program to read."""
    return data.as_json or STDOUT in options.export_paths


def _is_one_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:  # one of them does not exist yet
        return False


class Exports(Closing, Generic[Result]):
    """Every export of a result. A file that fails is left alone from then on; `check` raises."""

    def __init__(
        self,
        options: ExportOptions,
        data: JsonOptions,
        choose: Callable[[str, str | None], Exporter[Result]],
    ) -> None:
        """Open all files; `choose` gives the exporter for a path, or of a name.

        Raises:
            UsageError: an unknown suffix or format, an existing file without `--force`, or stdout
                named twice.
        """
        paths, format_name = options.export_paths, options.format_name
        self.to_stdout: Exporter[Result] | None = None
        self._choose = choose
        self._stack = ExitStack()
        self._files: list[tuple[Exporter[Result], OutputFile]] = []
        self._error: CkptError | None = None
        if format_name is not None and STDOUT not in paths:
            raise UsageError(f"--format {format_name} has no effect", "add `--export -`")
        if data.as_json and STDOUT in paths:
            raise UsageError(
                "--json and `--export -` both print on stdout", "give one, or `--export` a file"
            )
        try:
            for path in paths:
                self._open(path, format_name, options.force)
        except BaseException:
            self._stack.close()
            raise

    def _open(self, path: str, format_name: str | None, force: bool) -> None:
        if path == STDOUT:
            if self.to_stdout is not None:
                raise UsageError("`--export -` is given twice", "stdout takes one format")
            self.to_stdout = self._choose(path, format_name)
            return
        exporter = self._choose(path, None)
        file = OutputFile.open(Path(path), force)
        for _, other in self._files:
            if other.target == file.target or _is_one_file(other.target, file.target):
                file.close()
                raise UsageError(
                    f"`{other.path}` and `{path}` are one file", "give each export its own"
                )
        self._stack.callback(file.close)
        self._files.append((exporter, file))

    def writes(self, format_name: str) -> bool:
        """Whether a file has this format, and was not given up."""
        return any(exporter.name == format_name for exporter, _ in self._files)

    def write(self, result: Result) -> None:
        """Replace the content of every file; the first failure of each is kept for `check`."""
        for exporter, file in list(self._files):
            try:
                file.write(exporter.render(result))
            except CkptError as error:
                self._error = self._error or error
                self._files.remove((exporter, file))

    def print(self, result: Result) -> None:
        """Print what goes to stdout.

        Raises:
            UsageError: a binary format to a terminal.
        """
        assert self.to_stdout is not None
        if self.to_stdout.binary and sys.stdout.isatty():
            raise UsageError(f"format `{self.to_stdout.name}` is binary", "redirect stdout")
        content = self.to_stdout.render(result)
        if isinstance(content, str) and sys.stdout.isatty():
            content = visible(content, keep="\n\t")
        click.echo(content, nl=False)

    def check(self) -> None:
        """Raise the first error that a file had."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        self._stack.close()
