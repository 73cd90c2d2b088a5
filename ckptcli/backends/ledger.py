"""The ledger: an exact account of the live storages that the engine owns.

A storage is counted from the return of the function that allocated it until its last reference
is gone; a view counts with its base. Bytes in use are the sum over live storages, at any moment.
What a kernel allocates and frees inside itself is not a storage but its workspace, which
`ckptcli.backends.workspace` bounds for each call: a whole number of granules that no run changes,
never less than the arrays inside, and nothing where Python's objects alone can make the rise.

Invariant: `bytes_in_use` returns to its value before a pass, with the garbage collector off.

A timed pass carries no ledger: the namespace is wrapped for the memory pass alone.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ckptcli.backends.base import Array, Backend, Namespace
from ckptcli.backends.host_copy import HostCopy
from ckptcli.backends.workspace import Workspaces
from ckptcli.backends.wrapped import WrappedBackend, WrappedNamespace
from ckptcli.events import shared_shape


@dataclass(slots=True, eq=False)
class Storage:
    """One block of memory, and the ledger's ticks between which it lived.

    `label` is for whoever watches, to say what the storage is; the ledger does not look at it.
    """

    shape: tuple[int, ...]
    dtype: str
    storage_bytes: int
    born: int
    died: int | None = None
    label: Any = None

    def lived_at(self, tick: int) -> bool:
        """Whether the storage was live at `tick`."""
        return self.born <= tick and (self.died is None or self.died > tick)


@dataclass(slots=True)
class Peak:
    """The largest account seen since it was started."""

    live_bytes: int
    tick: int
    with_workspace_bytes: int | None
    """Kernels' workspace included; None where nobody measures it."""


class _Reference(weakref.ref[Any]):
    """A reference to the owner of a storage, which says what to release."""

    __slots__ = ("key", "storage")

    key: int
    storage: Storage


class Ledger:
    """Counts live storages. One ledger for one memory pass of one strategy.

    With `workspaces` the peaks are known with kernels' workspace too: in use when the call returns,
    and beside it the bound for the call.
    """

    def __init__(self, workspaces: Workspaces | None = None) -> None:
        self.bytes_in_use = 0
        self.host_bytes_in_use = self.host_peak_bytes = 0
        self.history: list[Storage] = []
        self.tick = 0
        self.workspaces = workspaces
        self.peak = self._new_peak()
        self._live: dict[int, _Reference] = {}
        self._high_bytes = 0
        self._released = self._release  # bound once, for all references

    def start_phase(self) -> None:
        """Begin a new peak at what is live now."""
        self.tick += 1
        self.peak = self._new_peak()

    def _new_peak(self) -> Peak:
        in_use = self.bytes_in_use
        return Peak(in_use, self.tick, None if self.workspaces is None else in_use)

    def take_high_bytes(self) -> int:
        """The most bytes in use since this was last asked, those in use then among them."""
        high_bytes, self._high_bytes = self._high_bytes, self.bytes_in_use
        return high_bytes

    def observe(self, array: Array, namespace: Namespace) -> None:
        """Count the storage of `array`, unless it is counted already."""
        owner = namespace.storage_of(array)
        key = id(owner)
        if key in self._live:
            return
        self.tick = tick = self.tick + 1
        shape, dtype, storage_bytes = namespace.storage_layout(array)
        storage = Storage(shared_shape(shape), dtype, storage_bytes, tick)
        self._live[key] = reference = _Reference(owner, self._released)
        reference.key = key
        reference.storage = storage
        self.history.append(storage)
        self._add(storage_bytes)

    def observe_host(self, copied: HostCopy) -> None:
        """Count what was moved to the host, apart from the storages, until it is let go of."""
        self.host_bytes_in_use += copied.host_bytes
        self.host_peak_bytes = max(self.host_peak_bytes, self.host_bytes_in_use)
        weakref.finalize(copied, self._release_host, copied.host_bytes).atexit = False

    def _release_host(self, host_bytes: int) -> None:
        self.host_bytes_in_use -= host_bytes

    def storage(self, storage_id: int) -> Storage | None:
        """The live storage with this identity, if it is counted."""
        reference = self._live.get(storage_id)
        return None if reference is None else reference.storage

    def owner(self, storage_id: int) -> Any:
        """The object of the library that is this storage, while it is live; None after that."""
        reference = self._live.get(storage_id)
        return None if reference is None else reference()

    def live_by_id(self) -> dict[int, Storage]:
        """What is live now by its identity, oldest first."""
        return {key: reference.storage for key, reference in self._live.items()}

    def live_at(self, tick: int) -> list[Storage]:
        """What was live at `tick`, oldest first."""
        return [storage for storage in self.history if storage.lived_at(tick)]

    def observe_workspace(self, workspace_bytes: int) -> None:
        """A call that needed so much has just returned; its result is counted."""
        peak = self.peak
        high_bytes = self.bytes_in_use + workspace_bytes
        if peak.with_workspace_bytes is None or peak.with_workspace_bytes < high_bytes:
            peak.with_workspace_bytes = high_bytes

    def _release(self, reference: weakref.ref[Any]) -> None:
        assert isinstance(reference, _Reference)
        del self._live[reference.key]
        storage = reference.storage
        self.tick = storage.died = self.tick + 1
        self.bytes_in_use -= storage.storage_bytes

    def _add(self, storage_bytes: int) -> None:
        self.bytes_in_use = in_use = self.bytes_in_use + storage_bytes
        if in_use > self._high_bytes:
            self._high_bytes = in_use
        peak = self.peak
        if in_use > peak.live_bytes:
            peak.live_bytes, peak.tick = in_use, self.tick
            if peak.with_workspace_bytes is not None:
                peak.with_workspace_bytes = max(peak.with_workspace_bytes, in_use)


class TrackedNamespace(WrappedNamespace):
    """A namespace whose every result is entered in a ledger."""

    def __init__(self, inner: Namespace, ledger: Ledger) -> None:
        super().__init__(inner)
        self._ledger = ledger

    def _seen(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        del name
        inner, ledger, workspaces = self._inner, self._ledger, self._ledger.workspaces

        def enter(result: Any) -> None:
            if hasattr(result, "nbytes"):
                ledger.observe(result, inner)
            elif isinstance(result, HostCopy):
                ledger.observe_host(result)

        def tracked(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            enter(result)
            return result

        if workspaces is None:
            return tracked

        def tracked_with_workspace(*args: Any, **kwargs: Any) -> Any:
            result, workspace_bytes = workspaces.call(function, args, kwargs)
            enter(result)
            ledger.observe_workspace(workspace_bytes)
            return result

        return tracked_with_workspace


class TrackedBackend(WrappedBackend):
    """A backend whose every array is entered in a ledger."""

    def __init__(self, inner: Backend, ledger: Ledger) -> None:
        super().__init__(inner, TrackedNamespace(inner.namespace, ledger))
        self._ledger = ledger

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        array = self._inner.asarray(data, dtype, copy)
        self._ledger.observe(array, self._inner.namespace)
        return array
