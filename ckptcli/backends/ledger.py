"""The ledger: an exact account of the live storages that the engine owns.

A storage is counted from the return of the function that allocated it until its last reference
is gone; a view counts with its base. Bytes in use are the sum over live storages, at any moment.
What a kernel allocates and frees inside itself is not a storage; `transient_bytes` bounds it from
tracemalloc, which sees every array that NumPy allocates.

Invariant: `bytes_in_use` returns to its value before a pass, with the garbage collector off.

A timed pass carries no ledger: the namespace is wrapped for the memory pass alone.
"""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ckptcli.backends.base import Array, Backend, Namespace


@dataclass(slots=True, eq=False)
class Storage:
    """One block of memory, and the ledger's ticks between which it lived."""

    shape: tuple[int, ...]
    dtype: str
    storage_bytes: int
    born: int
    died: int | None = None

    def lived_at(self, tick: int) -> bool:
        """Whether the storage was live at `tick`."""
        return self.born <= tick and (self.died is None or self.died > tick)


@dataclass(slots=True)
class Peak:
    """The largest account seen since it was started."""

    live_bytes: int
    tick: int
    with_transients_bytes: int | None
    """Kernel temporaries included; None where tracemalloc does not run."""


class Ledger:
    """Counts live storages. One ledger for one memory pass of one strategy."""

    def __init__(self) -> None:
        self.bytes_in_use = 0
        self.history: list[Storage] = []
        self.peak = Peak(0, 0, None)
        self._live: dict[int, tuple[Storage, weakref.ref[Any]]] = {}
        self.tick = 0
        self._traced = tracemalloc.is_tracing()
        self._traced_bytes = 0

    def start_phase(self) -> None:
        """Begin a new peak at what is live now."""
        self.tick += 1
        self.peak = Peak(self.bytes_in_use, self.tick, self.bytes_in_use if self._traced else None)
        if self._traced:
            tracemalloc.reset_peak()
            self._traced_bytes = tracemalloc.get_traced_memory()[0]

    def observe(self, array: Array, storage_of: Callable[[Any], Any]) -> None:
        """Count the storage of `array`, unless it is counted already."""
        owner = storage_of(array)
        key = id(owner)
        if key in self._live:
            return
        self.tick += 1
        storage = Storage(owner.shape, owner.dtype.name, owner.nbytes, self.tick)
        reference = weakref.ref(owner, lambda _: self._release(key))
        self._live[key] = (storage, reference)
        self.history.append(storage)
        self._account(storage.storage_bytes)

    def storage(self, storage_id: int) -> Storage | None:
        """The live storage with this identity, if it is counted."""
        entry = self._live.get(storage_id)
        return None if entry is None else entry[0]

    def live_by_id(self) -> dict[int, Storage]:
        """What is live now by its identity, oldest first."""
        return {key: storage for key, (storage, _) in self._live.items()}

    def live_at(self, tick: int) -> list[Storage]:
        """What was live at `tick`, oldest first."""
        return [storage for storage in self.history if storage.lived_at(tick)]

    def settle(self) -> None:
        """Take the kernel temporaries since the last change into account."""
        self._account(0)

    def _release(self, key: int) -> None:
        storage, _ = self._live.pop(key)
        self.tick += 1
        storage.died = self.tick
        self._account(-storage.storage_bytes)

    def _account(self, change_bytes: int) -> None:
        before = self.bytes_in_use
        self.bytes_in_use = before + change_bytes
        peak = self.peak
        if self.bytes_in_use > peak.live_bytes:
            peak.live_bytes, peak.tick = self.bytes_in_use, self.tick
        if self._traced:
            self._account_transients(max(before, self.bytes_in_use), change_bytes)

    def _account_transients(self, live_bytes: int, change_bytes: int) -> None:
        """Add what was allocated and freed since the last change to the larger of both ends.

        Only the bump above both ends counts, so that Python's own objects, which tracemalloc
        traces too, cancel out. A storage is still traced while its release is announced.
        """
        now_bytes, peak_bytes = tracemalloc.get_traced_memory()
        bump = max(0, peak_bytes - max(self._traced_bytes, now_bytes))
        peak = self.peak
        peak.with_transients_bytes = max(peak.with_transients_bytes or 0, live_bytes + bump)
        self._traced_bytes = now_bytes + min(0, change_bytes)
        tracemalloc.reset_peak()


class TrackedNamespace:
    """A namespace whose every result is entered in a ledger."""

    def __init__(self, inner: Namespace, ledger: Ledger) -> None:
        self._inner = inner
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._inner, name)
        storage_of = self._inner.storage_of
        ledger = self._ledger

        def tracked(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if hasattr(result, "nbytes"):
                ledger.observe(result, storage_of)
            return result

        if name in ("storage_of", "storage_id"):
            return function
        setattr(self, name, tracked)
        return tracked


class TrackedBackend:
    """A backend whose every array is entered in a ledger."""

    def __init__(self, inner: Backend, ledger: Ledger) -> None:
        self._inner = inner
        self._ledger = ledger
        self.name = inner.name
        self.label = inner.label
        self.namespace: Namespace = TrackedNamespace(inner.namespace, ledger)

    def asarray(self, data: Any, dtype: str | None) -> Array:
        array = self._inner.asarray(data, dtype)
        self._ledger.observe(array, self._inner.namespace.storage_of)
        return array

    def to_numpy(self, array: Array) -> Any:
        return self._inner.to_numpy(array)

    def quiet(self) -> AbstractContextManager[object]:
        return self._inner.quiet()
