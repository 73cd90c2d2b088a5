"""The graph of a workload's program, from one forward pass that is watched and holds nothing.

Every value is taken for one that is computed again, so that the pass needs no more memory than the
forward pass itself: a program whose `none` does not fit can still be looked at.

Invariant: a workload is watched once, at the first question, and forgotten with the workload.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import ClassVar

from ckptcli.autodiff.device import Device
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.program_graph import LayerPlace, ProgramGraph, ProgramNode
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.events import Event, LayersEnded, LayerStarted, NodeCreated
from ckptcli.graph import Node
from ckptcli.workloads.base import Workload

_GRAPHS: dict[int, ProgramGraph] = {}
"""By the identity of a workload that lives; workloads hold arrays and cannot be keys themselves."""


def program_graph(workload: Workload, backend: Backend) -> ProgramGraph:
    """The graph of the workload's program; watched on `backend`, the same on every one."""
    key = id(workload)
    if key not in _GRAPHS:
        _GRAPHS[key] = _watched(workload, backend)
        weakref.finalize(workload, _GRAPHS.pop, key).atexit = False
    return _GRAPHS[key]


class _HoldNothing(Strategy):
    """Every value counts as computed again; there is no backward pass that would do so."""

    keyword: ClassVar[str] = "watched"
    label: ClassVar[str] = "Watched"

    def recomputes(self, node: Node) -> bool:
        return True


class _Watcher:
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


def _watched(workload: Workload, backend: Backend) -> ProgramGraph:
    watcher = _Watcher()
    device = Device(backend).autodiff().gradient_checkpointing(_HoldNothing()).watched_by(watcher)
    with backend.quiet():
        result = workload.load(device).forward()
    needed = {node.id: node.saved for node in _reached(result.root.node)}
    parameters = frozenset(tensor.node.id for tensor in result.parameters.values())
    nodes = tuple(
        _program_node(event, owner, layer, needed.get(event.node_id, ()), parameters)
        for event, owner, layer in watcher.made
    )
    root = result.root.node.id
    del result
    backend.release_cached()
    return ProgramGraph(nodes, tuple(watcher.loops), parameters, root)


def _reached(root: Node) -> Iterator[Node]:
    """The tracked nodes that lead to the root, each once."""
    stack, seen = [root], {root.id}
    while stack:
        node = stack.pop()
        yield node
        for parent in node.parents:
            if parent.tracked and parent.id not in seen:
                seen.add(parent.id)
                stack.append(parent)


def _program_node(
    event: NodeCreated,
    owner: int,
    layer: LayerPlace | None,
    needed: tuple[Node, ...],
    parameters: frozenset[int],
) -> ProgramNode:
    return ProgramNode(
        id=event.node_id,
        op=event.op,
        parents=event.parents,
        shape=event.shape,
        dtype=event.dtype,
        value_bytes=event.value_bytes,
        memory_of=owner,
        tracked=event.tracked or event.node_id in parameters,
        memory_bound=event.memory_bound,
        needed=tuple(node.id for node in needed),
        layer=layer,
        flops=event.flops,
        moved_bytes=event.moved_bytes,
        source=event.source,
    )
