"""Standard output and error as a command needs them, whatever the process was started with.

Invariants: what is written to stdout is written whole, or an OSError says that it was not, and
nothing but the command writes there: what else goes to descriptor 1, of a user's code, of a library
in C, of a program that they start, is on stderr. What is written to stderr fails nothing, since the
result and the exit code say it too. A command that decides an exit code decides it whether its
reader leaves (`| head -1`) or not.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO


def open_standard_streams() -> None:
    """Put streams with these invariants in place of the interpreter's."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before the start (`>&-`, `2>&-`)
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    # Where the terminal's width is asked for, it is that of the first of these.
    sys.stdout = sys.__stdout__ = _ours_alone(sys.stdout)  # type: ignore[misc, assignment]
    sys.stderr = _without_failures(sys.stderr)


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """While it is open, writing to `sys.stdout` fails nothing when its reader has left."""
    stream = sys.stdout
    leaving: Any = _Leaving(stream)
    sys.stdout = leaving
    try:
        yield
    finally:
        leaving.flush()
        sys.stdout = stream


def discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the interpreter's last flush succeeds."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _ours_alone(stream: TextIO) -> TextIO:
    """The stream on a descriptor of its own, with a buffer.

    One without (PYTHONUNBUFFERED) writes a part of a text and tells nobody.
    """
    if os.name != "posix":  # a console of Windows is no descriptor
        return stream
    raw = io.FileIO(os.dup(stream.fileno()), "w")
    with contextlib.suppress(OSError):  # without a stderr it stays
        os.dup2(sys.stderr.fileno(), 1)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, newline="\n"
    )


def _without_failures(stream: TextIO) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(_Unheeded(stream.fileno())),
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=True,
        write_through=True,
    )


class _Unheeded(io.RawIOBase):
    """A descriptor to which writes succeed, arrived or not: full, closed, or nobody reads."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: object) -> int:
        content = bytes(data)  # type: ignore[call-overload]
        with contextlib.suppress(OSError):
            return os.write(self._descriptor, content)
        return len(content)


class _Leaving:
    """A stream that takes everything, and passes it on as long as somebody reads."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> Any:
        return self._passed_on(lambda: self._stream.write(data), len(data))

    def flush(self) -> None:
        self._passed_on(self._stream.flush, None)

    def _passed_on(self, call: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return call()
        except BrokenPipeError:
            discard(self._stream)
            return otherwise

    @property
    def buffer(self) -> _Leaving:
        """The same for bytes."""
        return _Leaving(self._stream.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
