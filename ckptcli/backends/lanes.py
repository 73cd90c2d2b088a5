"""Lanes: a few threads that share the parts of one element-wise call, the caller's among them.

NumPy lets go of the interpreter's lock while it computes, so that threads of Python suffice. Parts
are taken one after the other: a helper that has no core does not keep the caller waiting, who takes
them all then.

Invariant: when a call ends, however it does, no helper computes for it or refers to anything of it.
What NumPy would say of a floating-point error is said once, in the caller's thread, as it has set.
"""

from __future__ import annotations

import os
import threading
import tracemalloc
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any

import numpy as np

from ckptcli.backends.cores import usable_cores

MOST_LANES = 2
"""More were not measured: each call takes the interpreter's lock, and memory has its pace."""

Part = tuple[int, int]
"""From where to where."""

Call = Callable[[int, int, int], object]
"""Gets the lane, and the part from where to where."""

_KINDS = {
    "divide by zero": "divide",
    "overflow": "over",
    "underflow": "under",
    "invalid value": "invalid",
}
"""How NumPy names what it found, in the order in which it tells -> how `np.seterr` names it."""


_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""What a user limits NumPy's threads with; the first that is set counts, as for the BLAS."""


def lanes_of(threads: int | None) -> int:
    """How many lanes there are with so many threads; None: as many as the BLAS has by default.

    Never more than the cores that the process may use.
    """
    if threads is None:
        said = next(filter(None, map(os.environ.get, _LIMITS)), "")
        threads = int(said) if said.isdecimal() else MOST_LANES
    return max(1, min(threads, usable_cores() or 1, MOST_LANES))


def can_share(lanes: int) -> bool:
    """Whether a call may be made on several lanes now.

    Not while tracemalloc looks, since what helpers take for Python's objects differs from run to
    run; nor where floating-point errors are to be printed, logged or handed to a function.
    """
    if lanes == 1 or tracemalloc.is_tracing():
        return False
    return set(np.geterr().values()) <= {"ignore", "warn", "raise"}


class _Found:
    """What NumPy found in the parts: the target of its mode `log`."""

    def __init__(self) -> None:
        self.sentences: set[str] = set()

    def write(self, line: str) -> None:
        self.sentences.add(line.removeprefix("Warning: ").rstrip("\n"))


class _Shared:
    """One call, of which helpers take parts too."""

    def __init__(self, call: Call, parts: Iterable[Part]) -> None:
        self.call: Call | None = call
        self.parts = deque(parts)
        self.asked: dict[str, Any] = dict(np.geterr())
        self.found = _Found()
        self.error: BaseException | None = None
        self.busy = [threading.Lock() for _ in range(MOST_LANES - 1)]

    def help(self, helper: int) -> None:
        """Take parts in a helper's thread, unless the call has ended."""
        with self.busy[helper]:
            self._take_parts(self.call, helper + 1)

    def finish(self, call: Call) -> None:
        """Take parts in the caller's thread, and wait for those that helpers have taken."""
        try:
            self._take_parts(call, 0)
        finally:
            self.parts.clear()
            self.call = None  # before it waits: whoever comes later finds nothing to do
            for lock in self.busy:
                with lock:
                    pass
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # whose frames refer to what was computed with, and this one to it

    def _take_parts(self, call: Call | None, lane: int) -> None:
        if call is None:
            return
        modes = {kind: "ignore" if mode == "ignore" else "log" for kind, mode in self.asked.items()}
        try:
            with np.errstate(call=self.found, **modes):  # type: ignore[arg-type]
                while self.parts:
                    try:
                        start, stop = self.parts.popleft()
                    except IndexError:  # another lane was faster
                        break
                    call(lane, start, stop)
        except BaseException as error:
            self.parts.clear()
            self.error = self.error or error

    def tell(self, level: int) -> None:
        """Warn of or raise what was found; `level` frames up is who called the function."""
        for name, kind in _KINDS.items():
            for sentence in sorted(s for s in self.found.sentences if s.startswith(name)):
                if self.asked[kind] == "raise":
                    raise FloatingPointError(sentence)
                warnings.warn(sentence, RuntimeWarning, stacklevel=level + 1)


class _Helpers:
    """The threads beside the callers', one set for the process, made with the first call."""

    def __init__(self) -> None:
        self._queues: list[SimpleQueue[_Shared]] = []
        self._making = threading.Lock()

    def ask(self, shared: _Shared, count: int) -> None:
        """Have `count` helpers take parts of it; fewer where the system grants no more threads."""
        if len(self._queues) < count:
            self._make(count)
        for queue in self._queues[:count]:
            queue.put(shared)

    def _make(self, count: int) -> None:
        with self._making:
            while len(self._queues) < count:
                queue: SimpleQueue[_Shared] = SimpleQueue()
                helper = len(self._queues)
                thread = threading.Thread(
                    target=_serve, args=(queue, helper), name=f"ckpt lane {helper + 1}", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # no more threads, or the interpreter ends
                    return
                self._queues.append(queue)


def _serve(queue: SimpleQueue[_Shared], helper: int) -> None:
    while True:
        queue.get().help(helper)


_helpers = _Helpers()


def _forget_helpers() -> None:
    """A child process has none of its parent's threads."""
    global _helpers
    _helpers = _Helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


def share(call: Call, parts: Iterable[Part], lanes: int, level: int = 1) -> None:
    """Call `call(lane, start, stop)` for every part, on so many lanes at once.

    `level` is how many frames up a warning belongs.

    Raises:
        what `call` raises in any lane.
        FloatingPointError: as `np.errstate` asks for.
    """
    shared = _Shared(call, parts)
    _helpers.ask(shared, min(lanes, len(shared.parts), MOST_LANES) - 1)
    shared.finish(call)
    if shared.found.sentences:
        shared.tell(level + 1)
