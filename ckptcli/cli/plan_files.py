"""The files that `ckpt plan` writes, opened before anything is planned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.report.output import OutputFile

PLAN, PAGE = ".json", ".html"


def file_of(path: str | None, options: PlanOptions) -> AbstractContextManager[OutputFile | None]:
    """A file to write, if there is a path."""
    if path is None:
        return nullcontext()
    from ckptcli.report.output import OutputFile

    return OutputFile.open(Path(path), options.actions.force)


@contextmanager
def plan_files(options: PlanOptions) -> Iterator[list[OutputFile]]:
    """The files of --export.

    Raises:
        UsageError: one whose suffix says another format.
    """
    with ExitStack() as stack:
        files: list[OutputFile] = []
        for path in options.recorded.plan_exports:
            _check_suffix(path, options)
            file = stack.enter_context(file_of(path, options))
            files += [file] if file is not None else []
        yield files


def is_page(file: OutputFile) -> bool:
    """Whether it is for people."""
    return file.path.suffix == PAGE


def _check_suffix(path: str, options: PlanOptions) -> None:
    """Raises:
    UsageError: nothing is written under such a suffix, or no page of such a subject.
    """
    from ckptcli.cli.subjects import words_of

    if not path.endswith((PLAN, PAGE)):
        raise UsageError(
            f"--export {path}: a plan is written as JSON, and that of a program as a page too",
            f"use a {PLAN} or a {PAGE}",
        )
    if path.endswith(PAGE) and (words := words_of(options)):
        raise UsageError(
            f"--export {path}: a page is of a program's plan, and {words} is none", f"use a {PLAN}"
        )
