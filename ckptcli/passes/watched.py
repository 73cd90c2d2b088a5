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
from ckptcli.checkpoint.program_watcher import ProgramWatcher
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.events import NodeCreated
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


def _watched(workload: Workload, backend: Backend) -> ProgramGraph:
    watcher = ProgramWatcher()
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
