"""A cost graph as planners see it: values that can be computed again, and what asks for them.

Invariant: everything is a node's number; nothing here depends on a budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.planning.problems.base import Number
from ckptcli.planning.tape.cost_graph import (
    ApplyOp,
    CostGraph,
    CostNode,
    DrawLeaf,
    DropHandle,
    MakeLeaf,
)


class TapeModel:
    """The program.

    Attributes:
        graph: as recorded.
        costs: of each node, what computing it again costs.
        parents: of each node, its operands, each once.
        can_recompute: of each node whether its value can be computed again: tracked ops can.
        positions: of these nodes, in the order in which the forward pass makes them.
        requests: (step, value) for each retrieval, in order.
        steps: the nodes whose backward steps run, in order.
        in_hand: the nodes of which the program still has a tensor when its forward pass has ended.
        values: the nodes that can be computed again and that backward may need, first made first.
    """

    def __init__(self, graph: CostGraph, costs: Sequence[Number]) -> None:
        self.graph = graph
        self.costs = costs
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

    def name(self, node_id: int) -> str:
        """What messages call a value: `sigmoid 12`."""
        node = self.graph.nodes[node_id]
        return f"{node.op or 'leaf'} {node_id}"

    def storage_bytes(self, node_id: int) -> int:
        """The memory that the node's value brings with it, above what was there before."""
        return 0 if self.is_loaded[node_id] else self.graph.nodes[node_id].storage_bytes

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
