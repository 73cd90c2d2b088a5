"""One point in a process of its own, `ckpt run WORDS` or `ckpt plan WORDS`: its JSON, or why none.

Nothing here knows who asks: a thread of the command, a worker of Dask, or a job of Slurm.

Invariant: the process ends with the one that waits for it, however that goes.
"""

from __future__ import annotations

import platform
import subprocess
import tempfile
import threading
from collections.abc import Sequence

from ckptcli.exit_codes import STOPPED, TIMED_OUT
from ckptcli.profiling.parent import ending_pipe
from ckptcli.profiling.processes import start_measuring, text_of
from ckptcli.sweep.outcome import Outcome


class Stopped(Exception):
    """The point was given up: whoever asked wants no more of it."""


class Running:
    """The processes that run now, so that all can be ended at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self.is_stopped = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Know of a process; end it at once if all were told to end."""
        with self._lock:
            self._processes.add(process)
            if self.is_stopped:
                process.kill()

    def discard(self, process: subprocess.Popen[bytes]) -> None:
        """It has ended."""
        with self._lock:
            self._processes.discard(process)

    def stop(self) -> None:
        """End all, and whatever is started from now on."""
        with self._lock:
            self.is_stopped = True
            for process in self._processes:
                process.kill()


def measure_point(words: Sequence[str], folder: str, running: Running | None = None) -> Outcome:
    """Measure a point.

    Raises:
        Stopped: `running` was told to stop meanwhile.
    """
    return _outcome("run", words, folder, running or Running(), None)


def plan_point(words: Sequence[str], folder: str, timeout_s: float) -> Outcome:
    """Plan for a point; no plan within its budget is an answer too."""
    return _outcome("plan", words, folder, Running(), timeout_s)


def _outcome(
    command: str, words: Sequence[str], folder: str, running: Running, timeout_s: float | None
) -> Outcome:
    with ending_pipe() as pipe, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start_measuring(words, pipe, out, err, folder, command)
        running.add(process)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return Outcome(None, _too_long(timeout_s), platform.node())
        finally:
            running.discard(process)
        if running.is_stopped:
            raise Stopped
        text, complaint = text_of(out), text_of(err)
    reason = _reason(process.returncode, text, complaint, words)
    return Outcome(None if reason else text, reason, platform.node())


def _too_long(limit_s: float | None) -> str:
    """With the limit, which is not the user's own where nobody said --timeout."""
    beyond = "" if limit_s is None else f"{limit_s:g} s, the limit that "
    return f"it took longer than {beyond}--timeout{' sets' if beyond else ''}"


def _timeout_s(words: Sequence[str]) -> float | None:
    return float(words[words.index("--timeout") + 1]) if "--timeout" in words else None


def _reason(code: int, text: str, complaint: str, words: Sequence[str]) -> str | None:
    """Why the point failed; None where there is a whole record, whatever its gates would say."""
    if code == TIMED_OUT:
        return _too_long(_timeout_s(words))
    if code < 0:
        return f"its process was ended by signal {-code}; 9 may be the system's, out of memory"
    if code in STOPPED:
        return f"its process was stopped, exit code {code}"
    if text.startswith("{"):
        return None
    told = [line for line in complaint.splitlines() if line.startswith("Error: ")]
    reasons = "; ".join(line.removeprefix("Error: ") for line in told)
    return reasons or f"it ended with {code}: {complaint[-300:]}"
