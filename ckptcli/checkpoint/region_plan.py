"""What each region has to compute again, worked out from what backward steps ask for.

A step asks for a value at a level: the inner-most region that contains both the step and the
value's owner. To serve a level, its region runs the ops that lead to the values asked of it, from
what their nodes hold and from inputs that are asked of the levels around it in turn; what inner
regions make on the way is passed through.

Invariants: an op is in a region's order only if a value asked for depends on it; the order is that
of the forward pass; the number of uses of every value is known before anything is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter
from typing import Any

from ckptcli.checkpoint.regions import Region, common_region
from ckptcli.graph import Node

_by_id = attrgetter("id")


class RegionPlan:
    """One region's recomputation.

    Attributes:
        uses: node id -> how often its value will be used from now on, by backward steps, by regions
            inside and by the recomputation itself.
        order: the nodes to compute, in the order of the forward pass; until all is asked for, those
            whose values are asked for at this level.
        inputs: what else is needed from outside the region: values that its nodes do not hold.
        values: node id -> value that is there now.
        is_computed: whether the recomputation has run.
    """

    __slots__ = ("inputs", "is_computed", "order", "region", "uses", "values")

    def __init__(self, region: Region) -> None:
        self.region = region
        self.uses: dict[int, int] = {}
        self.order: list[Node] = []
        self.inputs: list[Node] = []
        self.values: dict[int, Any] = {}
        self.is_computed = False

    def take(self, node_id: int) -> Any:
        """A value that is there; counts as one use, and is handed over with its last."""
        uses = self.uses[node_id] - 1
        if uses:
            self.uses[node_id] = uses
            return self.values[node_id]
        return self.values.pop(node_id)


@dataclass(slots=True)
class Plans:
    """The plans of all regions, and the uses of values that are held."""

    regions: dict[Region, RegionPlan] = field(default_factory=dict)
    top: list[Node] = field(default_factory=list)
    by_depth: dict[int, list[RegionPlan]] = field(default_factory=dict)

    def ask(self, node: Node, step_region: Region | None) -> None:
        """One more use of the value of `node` by an op in `step_region`."""
        owner = node.owner
        level = owner if owner is step_region else common_region(step_region, owner)
        if level is None:
            self.top.append(node)
            return
        plan = self.regions.get(level)
        if plan is None:
            plan = self.regions[level] = RegionPlan(level)
            if level.depth not in self.by_depth:
                self.by_depth[level.depth] = []
            self.by_depth[level.depth].append(plan)
        node_id, uses = node.id, plan.uses
        if node_id in uses:
            uses[node_id] += 1
        else:
            uses[node_id] = 1
            plan.order.append(node)

    def complete(self) -> None:
        """All is asked for: work out what each region does, and what it asks of those around it."""
        for depth in range(max(self.by_depth, default=0), 0, -1):
            for plan in self.by_depth.get(depth, ()):
                _complete(plan)
                for node in plan.inputs:
                    self.ask(node, plan.region.parent)

    def held_inputs(self) -> Iterator[int]:
        """Before any region runs: the ids of what nodes hold for it, once for each region."""
        for plan in self.regions.values():
            yield from plan.values


def let_go(nodes: list[Node]) -> set[int]:
    """Let the nodes of one outer-most region, in order, hold what its recomputation may need.

    From the last to the first, each once: whether anybody asks for a value is known when all that
    use it have been looked at. A value that is computed again asks for its operands and keeps
    those that are held; any other keeps nothing to compute it from.

    Returns:
        The ids of held values that may be asked for: the plans of all regions ask for no other.
    """
    asked: set[int] = set()
    for node in reversed(nodes):
        for saved, value in zip(node.saved, node.saved_values):
            if value is None:
                asked.add(saved.id)
        if node.id in asked and node.owner is not None:
            asked.remove(node.id)
            for parent in node.parents:
                asked.add(parent.id)
        else:
            node.backup_values = ()
        node.recompute = False
    return asked


def _complete(plan: RegionPlan) -> None:
    """Work out order, uses, inputs and the values that nodes hold, from what is asked for."""
    region, uses, values = plan.region, plan.uses, plan.values
    stack, order = plan.order, []
    while stack:
        node = stack.pop()
        order.append(node)
        parents = node.parents
        for parent, value in zip(parents, node.backup_values or repeat(None)):
            parent_id = parent.id
            if parent_id in uses:
                uses[parent_id] += 1
                continue
            uses[parent_id] = 1
            owner = parent.owner
            if value is not None:
                values[parent_id] = value
            elif owner is region or (owner is not None and region.contains(owner)):
                stack.append(parent)
            else:
                plan.inputs.append(parent)
    order.sort(key=_by_id)
    plan.order = order
