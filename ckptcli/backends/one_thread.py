"""One thread of the BLAS for calls that several slow down.

A decomposition is thousands of small products and updates, after each of which the threads wait for
each other. At n = 256 two take a tenth longer than one on cores of their own, and several times as
long where another process uses one of them.

Invariant: when no call is under way the BLAS has the threads that it had before. While one is,
products of other threads of the process have one too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any


class _Limit:
    """The calls that are under way, of whichever thread, and what the last of them gives back."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls = 0
        self._limiter: Any = None

    def begin(self) -> None:
        with self._lock:
            if not self._calls and (pools := _pools()) is not None:
                self._limiter = pools.limit(limits=1)
            self._calls += 1

    def end(self) -> None:
        with self._lock:
            self._calls -= 1
            if not self._calls and self._limiter is not None:
                self._limiter.restore_original_limits()
                self._limiter = None


_limit = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """The BLAS that NumPy has loaded computes on the caller's thread alone."""
    _limit.begin()
    try:
        yield
    finally:
        _limit.end()


@cache
def _pools() -> Any:
    """The thread pools of every BLAS that is loaded at the first call; None where nobody knows."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas")
