"""The checkpointer: answers `retrieve` in the backward pass.

What steps hold stays with them. The states here are the values that are to be computed again and
what they are computed from. Each has a use count: it is handed over with its last use, so memory is
released as the backward pass goes; a value that was computed again stays for its remaining uses.

Invariant: after a complete backward pass all maps are empty (`check_drained`).

Source: Burn 0.22.1, `burn-autodiff/src/checkpoint/{base,state,retro_forward}.rs`. Burn's sort is
recursive; this one is a loop over a stack and yields the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptcli.backends.base import Namespace
from ckptcli.errors import CheckpointError
from ckptcli.events import Recomputed, Retrieved, Sink, Visited
from ckptcli.graph import Node, Operation


class Checkpointer:
    """States of one backward pass.

    Attributes:
        values: node id -> value that is held now.
        required: node id -> number of uses that are still to come.
        retro_forwards: node id -> node whose value is yet to be computed again.
    """

    __slots__ = ("namespace", "required", "retro_forwards", "values")

    def __init__(
        self,
        values: dict[int, Any],
        required: dict[int, int],
        retro_forwards: dict[int, Node],
        namespace: Namespace,
    ) -> None:
        self.values = values
        self.required = required
        self.retro_forwards = retro_forwards
        self.namespace = namespace

    def retrieve(self, step: Node) -> list[Any]:
        """The values that `step` saved: those that it holds, and of each other one a use.

        Raises:
            CheckpointError: a value is needed more often than was counted.
        """
        values = step.saved_values
        step.saved_values = ()
        if not self.required:
            return [*values]
        kept = []
        for node, value in zip(step.saved, values):
            if value is None:
                if node.id in self.retro_forwards:
                    self.compute_up_to(node)
                value = self.take(node.id)
            kept.append(value)
        return kept

    def answer(self, node: Node, value: Any, step: Node) -> Any:
        """What `step` gets for `node`, of which it holds `value`; None counts as one use."""
        return self.fetch(node) if value is None else value

    def fetch(self, node: Node) -> Any:
        """The node's value; counts as one use."""
        if node.id in self.retro_forwards:
            self.compute_up_to(node)
        return self.take(node.id)

    def take(self, node_id: int) -> Any:
        """A value that is held; counts as one use, and is handed over with its last."""
        required = self.required
        try:
            uses = required[node_id]
        except KeyError:
            raise CheckpointError(
                f"Node NodeId {{ value: {node_id} }} is needed more often than was counted"
            ) from None
        if uses == 1:
            del required[node_id]
            return self.values.pop(node_id)
        required[node_id] = uses - 1
        return self.values[node_id]

    def compute_up_to(self, node: Node) -> None:
        """Compute `node` again, and first what is not held on the way to it, parents in order."""
        retro_forwards = self.retro_forwards
        stack = [node]
        while stack:
            current = stack[-1]
            for parent in current.parents:
                if parent.id in retro_forwards:
                    stack.append(parent)
                    break
            else:
                stack.pop()
                del retro_forwards[current.id]
                self.retro_forward(current)

    def retro_forward(self, node: Node) -> None:
        """Compute the node again from its parents' states; its use count stays."""
        self.values[node.id] = computed_again(node, self.namespace, self.take)

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


def computed_again(node: Node, namespace: Namespace, take: Callable[[int], Any]) -> Any:
    """The node's value, computed from those of its parents, which `take` gives by their ids."""
    op: Operation = node.op  # type: ignore[assignment]
    parents = node.parents
    if len(parents) == 1:
        return op.forward(namespace, take(parents[0].id), node.params)
    if len(parents) == 2:
        return op.forward(namespace, take(parents[0].id), take(parents[1].id), node.params)
    return op.forward(namespace, *[take(parent.id) for parent in parents], node.params)


class WatchedCheckpointer(Checkpointer):
    """A checkpointer that tells a sink of every retrieval, visit and recomputation."""

    __slots__ = ("sink",)

    sink: Sink

    def retrieve(self, step: Node) -> list[Any]:
        values = step.saved_values
        step.saved_values = ()
        return [self.answer(node, value, step) for node, value in zip(step.saved, values)]

    def answer(self, node: Node, value: Any, step: Node) -> Any:
        order = self.topological_order(node)
        self.sink.emit(Retrieved(node.id, len(order), step.id))
        self._compute(order)
        return self.take(node.id) if value is None else value

    def compute_up_to(self, node: Node) -> None:
        self._compute(self.topological_order(node))

    def _compute(self, order: list[Node]) -> None:
        for needed in order:
            self.sink.emit(Visited(needed.id))
            if self.retro_forwards.pop(needed.id, None) is not None:
                self.retro_forward(needed)

    def topological_order(self, node: Node) -> list[Node]:
        """Post-order from `node` through what is not held; a held value ends its branch."""
        retro_forwards = self.retro_forwards
        if node.id not in retro_forwards:
            return [node]
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

    def retro_forward(self, node: Node) -> None:
        op: Operation = node.op  # type: ignore[assignment]
        super().retro_forward(node)
        storage = self.namespace.storage_id(self.values[node.id])
        self.sink.emit(Recomputed(node.id, op.name, storage))
