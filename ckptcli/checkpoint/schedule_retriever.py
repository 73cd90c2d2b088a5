"""Answers `retrieve` by a schedule: before each retrieval values are computed, brought back from
the host or let go of, as it says, and after it others are let go of.

There are no use counts, so that a value may be computed again as often as the schedule likes.
Nodes are known by their positions in the program for which the schedule was made.

Invariant: retrievals come in the order of the schedule; at the end every entry is executed and no
value is left, on the host neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ckptcli.backends.base import Namespace
from ckptcli.errors import CheckpointError
from ckptcli.events import BroughtBack, Recomputed, Retrieved, Sink, Visited
from ckptcli.graph import Node, Operation
from ckptcli.planning.tape.schedule import Retrieval, Schedule


class ScheduleRetriever:
    """The values of one backward pass, and what is still to be done with them.

    Attributes:
        values: position -> value that is there now.
        on_host: position -> copy on the host that is still to be brought back.
    """

    def __init__(
        self,
        schedule: Schedule,
        nodes: Mapping[int, Node],
        operands: Mapping[int, tuple[int, ...]],
        values: dict[int, Any],
        namespace: Namespace,
        sink: Sink | None,
    ) -> None:
        """`nodes` are those of this pass, `operands` the positions of each one's operands; `values`
        have the copy of each that is on the host.
        """
        self.on_host = {p: values.pop(p) for p in schedule.moved if p in values}
        self.values = values
        self._moved = schedule.moved
        self._returns = dict(schedule.returns)
        self._nodes = nodes
        self._operands = operands
        self._entries = schedule.retrievals
        self._next = 0
        self._namespace = namespace
        self._sink = sink

    def retrieve(self, step: Node) -> list[Any]:
        """The values that `step` saved, in its order.

        Raises:
            CheckpointError: as `_retrieved`.
        """
        return [self._retrieved(node, step) for node in step.saved]

    def _retrieved(self, node: Node, step: Node) -> Any:
        """The node's value for the backward step of `step`.

        Raises:
            CheckpointError: the schedule has another retrieval here, or does not compute the value.
        """
        entry = self._entry(node, step)
        if self._sink is None:
            for move in entry.before:
                if move < 0:
                    del self.values[~move]
                elif move in self.on_host:
                    self._bring_back(move)
                else:
                    self._compute(move)
        else:
            self._compute_told(entry, self._sink)
        if entry.node not in self.values:
            raise CheckpointError(
                f"the plan does not compute the value of node {node.id}, which the step of node "
                f"{step.id} retrieves",
                "make the plan anew",
            )
        value = self.values[entry.node]
        for position in entry.after:
            del self.values[position]
        return value

    def check_drained(self) -> None:
        """Raise unless the whole schedule was executed and nothing is left.

        Raises:
            CheckpointError: an entry or a value is left over.
        """
        left = len(self._entries) - self._next
        if left or self.values or self.on_host:
            over = sorted({*self.values, *self.on_host})
            nodes = [self._nodes[position].id for position in over]
            raise CheckpointError(
                f"after the backward pass {left} retrievals of the plan are left over, and the "
                f"values of nodes {nodes[:10]}",
                "the plan is for another program: make it anew",
            )

    def _entry(self, node: Node, step: Node) -> Retrieval:
        if self._next < len(self._entries):
            entry = self._entries[self._next]
            if (self._nodes[entry.node].id, self._nodes[entry.step].id) == (node.id, step.id):
                self._next += 1
                return entry
        raise CheckpointError(
            f"the step of node {step.id} retrieves node {node.id}, which is not what the plan has "
            f"as retrieval {self._next}",
            "the plan is for another program: make it anew",
        )

    def _bring_back(self, position: int) -> None:
        """Make a value from its copy on the host, which goes with the last time."""
        self._returns[position] -= 1
        copied = self.on_host[position] if self._returns[position] else self.on_host.pop(position)
        self.values[position] = self._namespace.from_host(copied)

    def _compute(self, position: int) -> None:
        """Compute a value from those of its operands.

        Raises:
            CheckpointError: an operand is not there.
        """
        node = self._nodes[position]
        op: Operation = node.op  # type: ignore[assignment]
        try:
            operands = [self.values[operand] for operand in self._operands[position]]
        except KeyError as error:
            raise CheckpointError(
                f"the plan computes node {node.id} (`{op.name}`) where the value of node "
                f"{self._nodes[error.args[0]].id} is gone",
                "make the plan anew",
            ) from None
        self.values[position] = op.forward(self._namespace, *operands, node.params)

    def _compute_told(self, entry: Retrieval, sink: Sink) -> None:
        """The same, told in the words of a checkpointer: what is on the way is visited first."""
        visits = dict(self._visits(entry))
        visited = [position for seen in visits.values() for position in seen]
        sink.emit(Retrieved(self._nodes[entry.node].id, len(visited), self._nodes[entry.step].id))
        for index, move in enumerate(entry.before):
            for position in visits.get(index, ()):
                sink.emit(Visited(self._nodes[position].id))
            if move < 0:
                del self.values[~move]
            elif move in self.on_host:
                self._bring_back(move)
                sink.emit(BroughtBack(self._nodes[move].id, self._storage_id(move)))
            else:
                self._compute(move)
                node = self._nodes[move]
                op = node.op.name if node.op else ""
                sink.emit(Recomputed(node.id, op, self._storage_id(move)))
        for position in visits.get(len(entry.before), ()):
            sink.emit(Visited(self._nodes[position].id))

    def _storage_id(self, position: int) -> int:
        identity: int = self._namespace.storage_id(self.values[position])
        return identity

    def _visits(self, entry: Retrieval) -> Iterator[tuple[int, list[int]]]:
        """Before which move which nodes are visited: each that is computed behind its operands."""
        seen: set[int] = set()
        for index, move in enumerate(entry.before):
            if move >= 0 and move not in self._moved:
                new = [p for p in dict.fromkeys((*self._operands[move], move)) if p not in seen]
                seen.update(new)
                yield index, new
        if entry.node not in seen:
            yield len(entry.before), [entry.node]
