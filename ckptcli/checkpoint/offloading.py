"""A checkpointer some of whose values are on the host: they come back at their first use.

Invariant: a value that came back is let go of with its last use, as any other.
"""

from __future__ import annotations

from typing import Any

from ckptcli.backends.host_copy import HostCopy
from ckptcli.checkpoint.checkpointer import Checkpointer, WatchedCheckpointer
from ckptcli.events import BroughtBack


class OffloadingCheckpointer(Checkpointer):
    """Nobody watches."""

    __slots__ = ()

    def take(self, node_id: int) -> Any:
        _bring_back(self, node_id)
        return super().take(node_id)


class WatchedOffloadingCheckpointer(WatchedCheckpointer):
    """A sink is told of what comes back, too."""

    __slots__ = ()

    def take(self, node_id: int) -> Any:
        if _bring_back(self, node_id):
            storage = self.namespace.storage_id(self.values[node_id])
            self.sink.emit(BroughtBack(node_id, storage))
        return super().take(node_id)


def _bring_back(checkpointer: Checkpointer, node_id: int) -> bool:
    """Whether the value was on the host."""
    value = checkpointer.values.get(node_id)
    if not isinstance(value, HostCopy):
        return False
    checkpointer.values[node_id] = checkpointer.namespace.from_host(value)
    return True
