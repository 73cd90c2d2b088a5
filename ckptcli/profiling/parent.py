"""How a measuring process is started, and how it ends with the one that waits for it.

Invariants: a child finds its modules where its parent does, and nothing in the current directory
stands in front of another module; a child whose parent is gone, however it went, ends at once.

Nothing is imported here that loads an array library: a child sets its threads first.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ckptcli.exit_codes import TERMINATED

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from ckptcli.profiling.parent import end_with_parent; "
    "end_with_parent({pipe}); from {module} import main; main()"
)


def child_command(
    arguments: Sequence[str], pipe: int | None, module: str = "ckptcli.cli.main"
) -> list[str]:
    """The command line of a process of its own that calls the module's `main()`, by default `ckpt
    ARGUMENTS`; `pipe` ends with the parent.

    It is a program text and not `-m`, which puts the current directory first; `-P` does without,
    but Python 3.10 has none.
    """
    program = _PROGRAM.format(path=_path(), pipe=pipe, module=module)
    return [sys.executable, "-c", program, *arguments]


@contextmanager
def ending_pipe() -> Iterator[int | None]:
    """The end of a pipe for a child to read, whose other end closes with this process."""
    if os.name != "posix":  # no other system hands a descriptor to a child by its number
        yield None
        return
    reader, writer = os.pipe()
    try:
        yield reader
    finally:
        os.close(reader)
        os.close(writer)


def end_with_parent(pipe: int | None) -> None:
    """End the process when the other end of the pipe is closed."""
    if pipe is not None:
        threading.Thread(target=_wait_for_end, args=(pipe,), daemon=True).start()


def _wait_for_end(pipe: int) -> None:
    os.read(pipe, 1)  # nobody writes: it returns when the last writer is gone
    os._exit(TERMINATED)


def _path() -> list[str]:
    """The parent's path without the current directory, and the package's own place at its end."""
    here = os.path.realpath(os.curdir)
    kept = [entry for entry in sys.path if os.path.realpath(entry or os.curdir) != here]
    own = str(Path(__file__).resolve().parents[2])
    return kept if own in kept else [*kept, own]
