"""Notes what a forward pass makes: each node, whose memory it lies in, and in which layer.

Invariant: a value in the memory of an operand is a view of it; nothing is held of either.
"""

from __future__ import annotations

from ckptcli.checkpoint.program_graph import LayerPlace
from ckptcli.events import Event, LayersEnded, LayerStarted, NodeCreated


class ProgramWatcher:
    """A sink that notes each node and the layer of the outer-most loop that makes it."""

    def __init__(self) -> None:
        self.made: list[tuple[NodeCreated, int, LayerPlace | None]] = []
        """Event, the node whose memory the value lies in, and the layer."""
        self.loops: list[int] = []
        self._depth = 0
        self._place: LayerPlace | None = None
        self._storages: dict[int, tuple[int, int]] = {}

    def emit(self, event: Event) -> None:
        if isinstance(event, NodeCreated):
            self.made.append((event, self._owner(event), self._place))
        elif isinstance(event, LayerStarted):
            self._start_layer(event)
        elif isinstance(event, LayersEnded):
            self._depth -= 1
            self._place = None if self._depth == 0 else self._place

    def _start_layer(self, event: LayerStarted) -> None:
        if event.layer == 0:
            self._depth += 1
            if self._depth == 1:
                self.loops.append(event.layer_count)
        if self._depth == 1:
            self._place = LayerPlace(len(self.loops) - 1, event.layer)

    def _owner(self, event: NodeCreated) -> int:
        """A value in the memory of an operand, which lives while it is used, is a view of it."""
        owner = event.node_id
        for parent in event.parents:
            storage, made_by = self._storages.get(parent, (None, parent))
            if storage == event.storage:
                owner = made_by
        self._storages[event.node_id] = event.storage, owner
        return owner
