"""The ledger: an exact account of the live storages that the engine owns.

A storage is counted from the return of the function that allocated it until its last reference
is gone; a view counts with its base. Bytes in use are the sum over live storages, at any moment.
What a kernel allocates and frees inside itself is not a storage; tracemalloc, which sees every
array that NumPy allocates, tells how far a call rose above what was live before it.

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
from ckptcli.backends.host_copy import HostCopy

PYTHON_OBJECTS_BYTES = 1024
"""Allowed in a call for the Python objects of its arrays, which are traced as well."""


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
        self.host_bytes_in_use = 0
        self.history: list[Storage] = []
        self.peak = Peak(0, 0, None)
        self._live: dict[int, tuple[Storage, weakref.ref[Any]]] = {}
        self.tick = 0
        self._traced = tracemalloc.is_tracing()

    def start_phase(self) -> None:
        """Begin a new peak at what is live now."""
        self.tick += 1
        self.peak = Peak(self.bytes_in_use, self.tick, self.bytes_in_use if self._traced else None)

    def observe(self, array: Array, namespace: Namespace) -> None:
        """Count the storage of `array`, unless it is counted already."""
        owner = namespace.storage_of(array)
        key = id(owner)
        if key in self._live:
            return
        self.tick += 1
        shape, dtype, storage_bytes = namespace.storage_layout(array)
        storage = Storage(shape, dtype, storage_bytes, self.tick)
        reference = weakref.ref(owner, lambda _: self._release(key))
        self._live[key] = (storage, reference)
        self.history.append(storage)
        self._add(storage.storage_bytes)

    def observe_host(self, copied: HostCopy) -> None:
        """Count what was moved to the host, apart from the storages, until it is let go of."""
        self.host_bytes_in_use += copied.host_bytes
        weakref.finalize(copied, self._release_host, copied.host_bytes).atexit = False

    def _release_host(self, host_bytes: int) -> None:
        self.host_bytes_in_use -= host_bytes

    def storage(self, storage_id: int) -> Storage | None:
        """The live storage with this identity, if it is counted."""
        entry = self._live.get(storage_id)
        return None if entry is None else entry[0]

    def owner(self, storage_id: int) -> Any:
        """The object of the library that is this storage, while it is live; None after that."""
        entry = self._live.get(storage_id)
        return None if entry is None else entry[1]()

    def live_by_id(self) -> dict[int, Storage]:
        """What is live now by its identity, oldest first."""
        return {key: storage for key, (storage, _) in self._live.items()}

    def live_at(self, tick: int) -> list[Storage]:
        """What was live at `tick`, oldest first."""
        return [storage for storage in self.history if storage.lived_at(tick)]

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of the namespace, its temporaries taken into account."""
        if not self._traced:
            return function(*args, **kwargs)
        tracemalloc.reset_peak()
        before_bytes = tracemalloc.get_traced_memory()[0]
        result = function(*args, **kwargs)
        rise_bytes = tracemalloc.get_traced_memory()[1] - before_bytes - PYTHON_OBJECTS_BYTES
        if isinstance(result, HostCopy):  # counted apart, though NumPy's are in traced memory too
            rise_bytes -= result.host_bytes
        peak = self.peak
        high_bytes = self.bytes_in_use + max(0, rise_bytes)
        peak.with_transients_bytes = max(peak.with_transients_bytes or 0, high_bytes)
        return result

    def _release(self, key: int) -> None:
        storage, _ = self._live.pop(key)
        self.tick += 1
        storage.died = self.tick
        self.bytes_in_use -= storage.storage_bytes

    def _add(self, storage_bytes: int) -> None:
        self.bytes_in_use += storage_bytes
        peak = self.peak
        if self.bytes_in_use > peak.live_bytes:
            peak.live_bytes, peak.tick = self.bytes_in_use, self.tick
            if peak.with_transients_bytes is not None:
                peak.with_transients_bytes = max(peak.with_transients_bytes, peak.live_bytes)


_FACTS = ("storage_of", "storage_id", "storage_layout", "nbytes", "dtype_name")
"""Functions of a namespace that say something of an array and make none."""


class TrackedNamespace:
    """A namespace whose every result is entered in a ledger."""

    def __init__(self, inner: Namespace, ledger: Ledger) -> None:
        self._inner = inner
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._inner, name)
        inner, ledger = self._inner, self._ledger

        def tracked(*args: Any, **kwargs: Any) -> Any:
            result = ledger.call(function, *args, **kwargs)
            if isinstance(result, HostCopy):
                ledger.observe_host(result)
            elif hasattr(result, "nbytes"):
                ledger.observe(result, inner)
            return result

        if name in _FACTS:
            return function
        setattr(self, name, tracked)
        return tracked


class TrackedBackend(Backend):
    """A backend whose every array is entered in a ledger."""

    def __init__(self, inner: Backend, ledger: Ledger) -> None:
        self._inner = inner
        self._ledger = ledger
        self.name = inner.name
        self.label = inner.label
        self.library = inner.library
        self.dtypes = inner.dtypes
        self.memory = inner.memory
        self.operand_errors = inner.operand_errors
        self.is_deterministic = inner.is_deterministic
        self.is_cpu = inner.is_cpu
        self.is_traced = inner.is_traced
        self.namespace: Namespace = TrackedNamespace(inner.namespace, ledger)

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        array = self._inner.asarray(data, dtype, copy)
        self._ledger.observe(array, self._inner.namespace)
        return array

    def to_numpy(self, array: Array) -> Any:
        return self._inner.to_numpy(array)

    def storage_values(self, storage: Any, dtype: str) -> Any:
        return self._inner.storage_values(storage, dtype)

    def quiet(self) -> AbstractContextManager[object]:
        return self._inner.quiet()

    def synchronize(self) -> None:
        self._inner.synchronize()

    def is_out_of_memory(self, error: BaseException) -> bool:
        return self._inner.is_out_of_memory(error)

    def release_cached(self) -> None:
        self._inner.release_cached()
