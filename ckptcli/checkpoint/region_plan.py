"""What each region has to compute again, worked out from what backward steps ask for.

A step asks for a value at a level: the inner-most region that contains both the step and the
value's owner. To serve a level, its region runs the ops that lead to the values asked of it, from
inputs that are asked of the levels around it in turn; what inner regions make on the way is passed
through.

Invariants: an op is in a region's order only if a value asked for depends on it; the order is that
of the forward pass; the number of uses of every value is known before anything is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from ckptcli.checkpoint.regions import Region, common_region
from ckptcli.graph import Node

_by_id = attrgetter("id")


@dataclass(slots=True)
class RegionPlan:
    """One region's recomputation.

    Attributes:
        targets: the values that are asked for at this level.
        required: node id -> how often each of them is.
        order: the nodes to compute, in the order of the forward pass.
        uses: node id -> how often the recomputation itself uses the value.
        inputs: values from outside the region.
    """

    region: Region
    targets: list[Node] = field(default_factory=list)
    required: dict[int, int] = field(default_factory=dict)
    order: list[Node] = field(default_factory=list)
    uses: dict[int, int] = field(default_factory=dict)
    inputs: list[Node] = field(default_factory=list)


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
            self.by_depth.setdefault(level.depth, []).append(plan)
        node_id, required = node.id, plan.required
        if node_id in required:
            required[node_id] += 1
        else:
            required[node_id] = 1
            plan.targets.append(node)

    def complete(self) -> None:
        """All is asked for: work out what each region does, and what it asks of those around it."""
        for depth in range(max(self.by_depth, default=0), 0, -1):
            for plan in self.by_depth.get(depth, ()):
                _complete(plan)
                for node in plan.inputs:
                    self.ask(node, plan.region.parent)

    def constants(self) -> Iterator[Node]:
        """The untracked nodes that are computed again."""
        for plan in self.regions.values():
            for node in plan.order:
                if not node.tracked:
                    yield node


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
    """Work out order, uses and inputs from the targets."""
    region, order, uses, inputs = plan.region, plan.order, plan.uses, plan.inputs
    seen = set(plan.required)
    stack = plan.targets
    while stack:
        node = stack.pop()
        order.append(node)
        for parent in node.parents:
            parent_id = parent.id
            uses[parent_id] = uses.get(parent_id, 0) + 1
            if parent_id not in seen:
                seen.add(parent_id)
                owner = parent.owner
                if owner is region or (owner is not None and region.contains(owner)):
                    stack.append(parent)
                else:
                    inputs.append(parent)
    order.sort(key=_by_id)
