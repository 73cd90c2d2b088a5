"""The account of a recording: what of a pass is bytes that no strategy changes, in order.

Storages of values are left out: when they are let go of is what strategies decide. Of all others
it is noted when they come and when they go, in stretches between what does depend on a strategy.

Invariant: a storage is counted from the return of the function that allocated it until its last
reference is gone, as the ledger counts it.
"""

from __future__ import annotations

import weakref
from typing import Any

from ckptcli.backends.base import Array, Namespace
from ckptcli.backends.random_keys import Distribution
from ckptcli.planning.tape.cost_graph import NO_SPAN, Span


class _Reference(weakref.ref[Any]):
    """A reference to the owner of a storage."""

    __slots__ = ("is_counted", "key", "storage_bytes")

    key: int
    storage_bytes: int
    is_counted: bool


class Account:
    """Live storages, and the stretch that is being recorded.

    Attributes:
        counts: whether what is allocated now is noted; values that are computed again are not.
        owners: storage -> the node that made it, of each that is live.
        drawn: what the last random array was drawn from, until a tensor is made of it.
    """

    def __init__(self, namespace: Namespace) -> None:
        self.counts = True
        self.owners: dict[int, int] = {}
        self.drawn: Distribution | None = None
        self._namespace = namespace
        self._live: dict[int, _Reference] = {}
        self._changes: list[tuple[int, int]] = []
        """Of each allocation, release and end of a call: bytes more, and workspace at that time."""
        self._from: int | None = None
        self._to: int | None = None
        self._released = self._release

    @property
    def live_bytes(self) -> int:
        """All that is live, values too."""
        return sum(reference.storage_bytes for reference in self._live.values())

    def observe(self, array: Array) -> None:
        """Count the storage of `array`, unless it is counted already."""
        owner = self._namespace.storage_of(array)
        key = id(owner)
        if key in self._live:
            return
        _, _, storage_bytes = self._namespace.storage_layout(array)
        self._live[key] = reference = _Reference(owner, self._released)
        reference.key, reference.storage_bytes = key, storage_bytes
        reference.is_counted = self.counts
        if self.counts:
            self._changes.append((storage_bytes, 0))

    def observe_workspace(self, workspace_bytes: int) -> None:
        """A call that needed so much has just returned."""
        if self.counts and workspace_bytes:
            self._changes.append((0, workspace_bytes))

    def disown(self, array: Array) -> None:
        """Leave out an array that stands for a value which is counted elsewhere."""
        owner = self._namespace.storage_of(array)
        key = id(owner)
        self._live[key] = reference = _Reference(owner, self._released)
        reference.key, reference.storage_bytes, reference.is_counted = key, 0, False

    def storage_id(self, array: Array) -> int:
        """The identity of an array's storage, valid while it lives."""
        identity: int = self._namespace.storage_id(array)
        return identity

    def storage_bytes(self, key: int) -> int:
        """The bytes of a live storage; 0 for one that nobody counted."""
        reference = self._live.get(key)
        return 0 if reference is None else reference.storage_bytes

    def is_new_value(self, key: int) -> bool:
        """Take a storage of this stretch for a value's: it goes when its users do. Whether it was
        one of nobody's before.
        """
        reference = self._live.get(key)
        if reference is None or not reference.is_counted:
            return False
        reference.is_counted = False
        return True

    def take_drawn(self) -> Distribution | None:
        """What the tensor that is made now was drawn from, if it is random."""
        drawn, self.drawn = self.drawn, None
        return drawn

    def forward_begins(self) -> None:
        """The op's own function runs from here, unless it did before in this stretch."""
        if self._from is None:
            self._from = len(self._changes)

    def forward_ends(self) -> None:
        """The op's own function has returned."""
        self._to = len(self._changes)

    def evaluation(self) -> Span:
        """What the op's own function took in this stretch, its result included."""
        rise, workspace_rise, _ = _summed(self._changes[self._from or 0 : self._to])
        return Span(rise, workspace_rise, 0)

    def take(self, value_bytes: int = 0) -> Span:
        """End the stretch; `value_bytes` are of the value that it made."""
        changes, self._changes = self._changes, []
        self._from = self._to = None
        rise, workspace_rise, net = _summed(changes)
        return Span(rise, workspace_rise, net - value_bytes) if changes else NO_SPAN

    def _release(self, reference: weakref.ref[Any]) -> None:
        assert isinstance(reference, _Reference)
        del self._live[reference.key]
        self.owners.pop(reference.key, None)
        if reference.is_counted:
            self._changes.append((-reference.storage_bytes, 0))


def _summed(changes: list[tuple[int, int]]) -> Span:
    live = rise = workspace_rise = 0
    for more, workspace_bytes in changes:
        live += more
        rise = max(rise, live)
        workspace_rise = max(workspace_rise, live + workspace_bytes)
    return Span(rise, workspace_rise, live)
