"""Signals that end a run early: each with its exit code, what is measured so far kept.

SIGINT ends with 130, SIGTERM with 143, SIGHUP with 129, `--timeout` with 124. All arrive as
KeyboardInterrupt, which the rounds take as "keep what is complete". Python drops an exception that
a signal raises inside a weak reference's callback, of which the ledger has many; `check` raises it
once more. A program that ignores the alarm is interrupted a second later, and one that does not
stop for that either is ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import click

from ckptcli.exit_codes import HUNG_UP, INTERRUPTED, TERMINATED, TIMED_OUT
from ckptcli.report.output import close_all

LEAST_TIMEOUT_S = 1e-3
"""A timeout below is over before the body begins, without an alarm."""

LATE_S = 1.0
"""After the timeout: the alarm did not arrive."""

ABANDONED_S = 6.0
"""After the timeout: whatever runs does not let itself be interrupted."""


class Stops:
    """Installs the handlers inside; `exit_code` says what came, 0 for nothing."""

    def __init__(self, timeout_s: float | None) -> None:
        self.exit_code = 0
        self._reason = ""
        self._unraisable = sys.unraisablehook
        self._timeout_s = timeout_s
        self._before: dict[int, Any] = {}
        self._is_entered = False
        self._is_late = False
        self._is_complete = False
        self._is_left = False
        self._has_ended = threading.Event()

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has come."""
        if self.exit_code:
            raise KeyboardInterrupt(self._reason)

    def measured(self) -> None:
        """What was asked for is there: the first signal from now on only decides the exit code."""
        self._is_complete = True
        self._end_timeout()

    def __enter__(self) -> Stops:
        sys.unraisablehook = self._without_interrupts
        self._install("SIGINT", INTERRUPTED, "interrupted")
        self._install("SIGTERM", TERMINATED, "terminated")
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self._install("SIGHUP", HUNG_UP, "hung up")  # `nohup` asks for the opposite
        if self._timeout_s is not None:
            self._install("SIGALRM", TIMED_OUT, f"--timeout {self._timeout_s:g} s")
            threading.Thread(target=self._watch, args=(self._timeout_s,), daemon=True).start()
            if self._timeout_s < LEAST_TIMEOUT_S:
                self._note(TIMED_OUT, f"--timeout {self._timeout_s:g} s")
            elif hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, self._timeout_s)
        self._is_entered = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Put everything back; a stop that nobody took ends here, with a line on stderr."""
        self._end_timeout()
        sys.unraisablehook = self._unraisable
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.exit_code:
            # CPython notes an interrupt that leaves an exec (a dataclass has one) and would end
            # the process by SIGINT, whatever its exit code; an exec that succeeds clears the note.
            exec("")
        if self.exit_code and _is_interrupt(error):
            is_told = self._is_complete
            when = "while the result was told" if is_told else "before anything was measured"
            click.echo(f"{self._reason}: stopped {when}", err=True)
            return True
        return False

    def _install(self, name: str, exit_code: int, reason: str) -> None:
        number = getattr(signal, name, None)
        if number is not None:
            self._before[number] = signal.signal(number, self._handler(exit_code, reason))

    def _end_timeout(self) -> None:
        self._has_ended.set()
        if self._timeout_s is not None and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _watch(self, timeout_s: float) -> None:
        """In a thread: see to it that the timeout ends the process."""
        if self._has_ended.wait(timeout_s + LATE_S):
            return
        if self.exit_code == 0:
            self._is_late = True
            interrupt_main()
        if self._has_ended.wait(ABANDONED_S - LATE_S):
            return
        click.echo(f"--timeout {timeout_s:g} s: what runs does not stop, and is ended", err=True)
        close_all()
        os._exit(TIMED_OUT)

    def _without_interrupts(self, dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            self._unraisable(dropped)

    def _note(self, exit_code: int, reason: str) -> None:
        self._is_late = False
        self.exit_code, self._reason = exit_code, reason
        if self._is_entered:  # before, nobody is there to end in order; `check` raises it
            raise KeyboardInterrupt(reason)

    def _note_when_complete(self, exit_code: int, reason: str) -> None:
        """The first signal lets the result be told; who sends another wants no more of it."""
        if self._is_left:
            self._note(exit_code, reason)
        self._is_left = True
        self.exit_code = self.exit_code or exit_code

    def _handler(self, exit_code: int, reason: str) -> Callable[[int, FrameType | None], None]:
        def stop(number: int, frame: FrameType | None) -> None:
            if self._is_late:
                self._note(TIMED_OUT, f"--timeout {self._timeout_s:g} s")
            elif self._is_complete:
                self._note_when_complete(exit_code, reason)
            elif self.exit_code == 0:  # a second must not break what the first one saves
                self._note(exit_code, reason)

        return stop


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether it is one, or was made of one: a class that is being defined makes a RuntimeError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
