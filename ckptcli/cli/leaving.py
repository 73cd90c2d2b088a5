"""Streams whose reader may leave (`| head -1`) without what is being decided ending there.

A command that decides an exit code goes on to decide it, and what it prints afterwards goes
nowhere. What is told on stderr is no command's purpose, so that no command ends by it.

Invariant: whatever a reader does, the exit code is that of a run that was read to its end.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any


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


@contextlib.contextmanager
def reader_may_leave(name: str) -> Iterator[None]:
    """While it is open, `sys.stdout` or `sys.stderr` is written to whether it is read or not."""
    stream = getattr(sys, name)
    leaving = _Leaving(stream)
    setattr(sys, name, leaving)
    try:
        yield
    finally:
        leaving.flush()
        setattr(sys, name, stream)


def discard(stream: Any) -> None:
    """Let what is still buffered go nowhere, so that the interpreter's last flush succeeds."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
