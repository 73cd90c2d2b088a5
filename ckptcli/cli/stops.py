"""Signals that end a run early: each with its exit code, what is measured so far kept.

SIGINT ends with 130, SIGTERM with 143, `--timeout` with 124. All arrive as KeyboardInterrupt, which
the rounds take as "keep what is complete". Python drops an exception that a signal raises inside a
weak reference's callback, of which the ledger has many; `check` raises it once more.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import click

from ckptcli.exit_codes import INTERRUPTED, TERMINATED, TIMED_OUT

LEAST_TIMEOUT_S = 1e-3
"""An alarm that rings before the body has begun would find nobody to end in order."""


class Stops:
    """Installs the handlers inside; `exit_code` says what came, 0 for nothing."""

    def __init__(self, timeout_s: float | None) -> None:
        self.exit_code = 0
        self._reason = ""
        self._unraisable = sys.unraisablehook
        self._timeout_s = timeout_s
        self._before: dict[int, Any] = {}

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has come."""
        if self.exit_code:
            raise KeyboardInterrupt(self._reason)

    def __enter__(self) -> Stops:
        sys.unraisablehook = self._without_interrupts
        self._install("SIGINT", INTERRUPTED, "interrupted")
        self._install("SIGTERM", TERMINATED, "terminated")
        if self._timeout_s is not None:
            self._install("SIGALRM", TIMED_OUT, f"--timeout {self._timeout_s:g} s")
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, max(self._timeout_s, LEAST_TIMEOUT_S))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Put everything back; a stop that nobody took ends here, with a line on stderr."""
        if self._timeout_s is not None and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        sys.unraisablehook = self._unraisable
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.exit_code:
            # CPython notes an interrupt that leaves an exec (a dataclass has one) and would end
            # the process by SIGINT, whatever its exit code; an exec that succeeds clears the note.
            exec("")
        if kind is KeyboardInterrupt and self.exit_code:
            click.echo(f"{self._reason}: stopped before anything was measured", err=True)
            return True
        return False

    def _install(self, name: str, exit_code: int, reason: str) -> None:
        number = getattr(signal, name, None)
        if number is not None:
            self._before[number] = signal.signal(number, self._handler(exit_code, reason))

    def _without_interrupts(self, dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            self._unraisable(dropped)

    def _handler(self, exit_code: int, reason: str) -> Callable[[int, FrameType | None], None]:
        def stop(number: int, frame: FrameType | None) -> None:
            if self.exit_code == 0:  # a second signal must not break what the first one saves
                self.exit_code, self._reason = exit_code, reason
                raise KeyboardInterrupt(reason)

        return stop
