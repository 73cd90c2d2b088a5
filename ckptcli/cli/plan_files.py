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

SUFFIX = ".json"


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
            if not path.endswith(SUFFIX):
                raise UsageError(f"--export {path}: a plan is written as JSON", f"use a {SUFFIX}")
            file = stack.enter_context(file_of(path, options))
            files += [file] if file is not None else []
        yield files
