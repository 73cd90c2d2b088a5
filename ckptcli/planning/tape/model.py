"""A cost graph as planners see it: values that can be computed again, and what asks for them.

Invariant: everything is a node's number; nothing here depends on a budget.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ckptcli.planning.problems.base import Number
from ckptcli.planning.tape.cost_graph import (
    ApplyOp,
    CostGraph,
    CostNode,
    DrawLeaf,
    DropHandle,
    MakeLeaf,
)
from ckptcli.planning.tape.moving import NOTHING_MOVES, Moving
from ckptcli.planning.tape.schedule import Schedule


class TapeModel:
    """The program.

    Attributes:
        graph: as recorded.
        costs: of each node, what computing it again costs.
        moving: what may be moved to the host.
        parents: of each node, its operands, each once.
        can_recompute: of each node whether its value can be computed again: tracked ops can.
        positions: of these nodes, in the order in which the forward pass makes them.
        requests: (step, value) for each retrieval, in order.
        steps: the nodes whose backward steps run, in order.
        in_hand: the nodes of which the program still has a tensor when its forward pass has ended.
        values: the nodes that can be computed again and that backward may need, first made first.
        movable: of these, those that a move to the host takes off the device.
    """

    def __init__(
        self, graph: CostGraph, costs: Sequence[Number], moving: Moving = NOTHING_MOVES
    ) -> None:
        self.graph = graph
        self.costs = costs
        self.moving = moving
        nodes = graph.nodes
        made = MakeLeaf | DrawLeaf | ApplyOp
        loaded = {action.node_id for action in graph.load if isinstance(action, made)}
        self.parents = [tuple(dict.fromkeys(node.parents)) for node in nodes]
        self.can_recompute = [_is_tracked_op(n) and n.id not in loaded for n in nodes]
        self.positions = [node.id for node in nodes if self.can_recompute[node.id]]
        self.steps = list(graph.steps)
        self.requests = [(step, value) for step in self.steps for value in nodes[step].needed]
        self.is_loaded = [node.id in loaded for node in nodes]
        self.values = self._needed()
        dropped = {a.node_id for a in graph.forward if isinstance(a, DropHandle)}
        self.in_hand = {n.id for n in nodes if n.id not in dropped and n.id not in loaded}
        in_hand = {nodes[node].memory_of for node in self.in_hand}
        self.movable = [v for v in self.values if v not in in_hand and self.can_move(v)]

    def name(self, node_id: int) -> str:
        """What messages call a value: `sigmoid 12`."""
        node = self.graph.nodes[node_id]
        return f"{node.op or 'leaf'} {node_id}"

    def storage_bytes(self, node_id: int) -> int:
        """The memory that the node's value brings with it, above what was there before."""
        return 0 if self.is_loaded[node_id] else self.graph.nodes[node_id].storage_bytes

    def can_move(self, node_id: int) -> bool:
        """Whether the value may be moved to the host: one that fills memory of its own, so that its
        copy lies in memory as it does.
        """
        node = self.graph.nodes[node_id]
        has_own = node.memory_of == node_id and 0 < node.storage_bytes == node.value_bytes
        return has_own and self.can_recompute[node_id]

    def move_cost(self, node_id: int) -> Number:
        """Of moving the value one way."""
        return self.graph.nodes[node_id].value_bytes * self.moving.byte_cost

    def cost_of(self, schedule: Schedule) -> Number:
        """Of all that a schedule computes again, moves to the host and brings back."""
        again = sum(self.costs[node] for node in schedule.computations())
        return again + self.moves_cost(schedule)

    def moves_cost(self, schedule: Schedule) -> Number:
        """Of all that it moves to the host and brings back."""
        moved = sum(self.move_cost(node) for node in schedule.moved)
        back = sum(times * self.move_cost(node) for node, times in schedule.returns.items())
        return moved + back

    def parents_under(self, moved: Collection[int]) -> Sequence[tuple[int, ...]]:
        """Of each node what has to be there to make it in the backward pass: its operands; nothing
        for one that is brought back.
        """
        if not moved:
            return self.parents
        return [() if node in moved else of for node, of in enumerate(self.parents)]

    def memory_bytes(self, node_id: int) -> int:
        """The memory that the node's value lies in."""
        return self.storage_bytes(self.graph.nodes[node_id].memory_of)

    def marked(self, node_id: int) -> bool:
        """Whether `balanced` computes it again: a memory-bound op without a constant operand."""
        nodes = self.graph.nodes
        facts = nodes[node_id].facts
        if facts is None or facts.bound != "memory":
            return False
        parents = nodes[node_id].parents
        arity = facts.arity or len(parents)
        return len(parents) == arity and all(self._is_tracked(parent) for parent in parents)

    def _is_tracked(self, node_id: int) -> bool:
        node = self.graph.nodes[node_id]
        return node.tracked or node.id in self.graph.parameters.values()

    def _needed(self) -> list[int]:
        """What retrievals may lead to."""
        seen: set[int] = set()
        stack = [value for _, value in self.requests]
        while stack:
            node_id = stack.pop()
            if node_id not in seen and self.can_recompute[node_id]:
                seen.add(node_id)
                stack.extend(self.parents[node_id])
        return sorted(seen)


def _is_tracked_op(node: CostNode) -> bool:
    return node.tracked and node.op is not None
