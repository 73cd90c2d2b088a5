"""The checkpointer: answers `retrieve` in the backward pass.

Each state has a use count. A value is handed over with its last use, so memory is released as the
backward pass goes; a value that was computed again stays for its remaining uses.

Invariant: after a complete backward pass all maps are empty (`check_drained`).

Source: Burn 0.22.1, `burn-autodiff/src/checkpoint/{base,state,retro_forward}.rs`. Burn's sort is
recursive; this one is a loop over a stack and yields the same order.
"""

from __future__ import annotations

from typing import Any

from ckptcli.backends.base import Namespace
from ckptcli.errors import CheckpointError
from ckptcli.events import Recomputed, Retrieved, Sink, Visited
from ckptcli.graph import Node


class Checkpointer:
    """States of one backward pass.

    Attributes:
        values: node id -> value that is held now.
        required: node id -> number of uses that are still to come.
        retro_forwards: node id -> node whose value is yet to be computed again.
    """

    __slots__ = ("namespace", "required", "retro_forwards", "sink", "step", "values")

    def __init__(
        self,
        values: dict[int, Any],
        required: dict[int, int],
        retro_forwards: dict[int, Node],
        namespace: Namespace,
        sink: Sink | None,
    ) -> None:
        self.values = values
        self.required = required
        self.retro_forwards = retro_forwards
        self.namespace = namespace
        self.sink = sink
        self.step = -1

    def retrieve(self, node: Node) -> Any:
        """The node's value, computed again if it is not held; counts as one use.

        Raises:
            CheckpointError: the node is needed more often than was counted.
        """
        node_id = node.id
        if self.sink is not None or node_id in self.retro_forwards:
            self._compute_up_to(node)
        required = self.required
        uses = required[node_id]
        if uses == 1:
            del required[node_id]
            return self.values.pop(node_id)
        required[node_id] = uses - 1
        return self.values[node_id]

    def _compute_up_to(self, node: Node) -> None:
        order = self._topological_order(node)
        sink = self.sink
        if sink is not None:
            sink.emit(Retrieved(node.id, len(order), self.step))
        for needed in order:
            if sink is not None:
                sink.emit(Visited(needed.id))
            if self.retro_forwards.pop(needed.id, None) is not None:
                self._retro_forward(needed)

    def _topological_order(self, node: Node) -> list[Node]:
        """Post-order from `node` through what is not held; a held value ends its branch."""
        retro_forwards = self.retro_forwards
        order: list[Node] = []
        seen: set[int] = set()
        stack = [(node, False)]
        while stack:
            current, parents_done = stack.pop()
            if parents_done:
                order.append(current)
                continue
            if current.id in seen:
                continue
            seen.add(current.id)
            if current.id not in retro_forwards:
                order.append(current)
                continue
            stack.append((current, True))
            for parent in reversed(current.parents):
                if parent.id not in seen:
                    stack.append((parent, False))
        return order

    def _retro_forward(self, node: Node) -> None:
        """Compute the node again from its parents' states; its use count stays."""
        op = node.op
        assert op is not None
        inputs = [self._take(parent.id) for parent in node.parents]
        value = op.forward(self.namespace, *inputs, node.params)
        self.values[node.id] = value
        if self.sink is not None:
            storage = self.namespace.storage_id(value)
            self.sink.emit(Recomputed(node.id, op.name, storage))

    def _take(self, node_id: int) -> Any:
        uses = self.required[node_id] - 1
        if uses:
            self.required[node_id] = uses
            return self.values[node_id]
        del self.required[node_id]
        return self.values.pop(node_id)

    def check_drained(self) -> None:
        """Raise unless every state was used exactly as often as it was counted.

        Raises:
            CheckpointError: a state is left over.
        """
        if self.required or self.values or self.retro_forwards:
            left = sorted({*self.required, *self.values, *self.retro_forwards})
            raise CheckpointError(
                f"the checkpointer is not drained after the backward pass: nodes {left[:10]}",
                "this is a defect of the engine, please report it with the program that shows it",
            )
