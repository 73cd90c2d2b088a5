"""What each region has to compute again, worked out from what backward steps ask for.

A step asks for a value at a level: the inner-most region that contains both the step and the
value's owner. To serve a level, its region runs the ops that lead to the values asked of it, from
inputs that are asked of the levels around it in turn; what inner regions make on the way is passed
through.

Invariants: an op is in a region's order only if a value asked for depends on it; the order is that
of the forward pass; the number of uses of every value is known before anything is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ckptcli.checkpoint.regions import Region, common_region
from ckptcli.graph import Node


@dataclass(slots=True)
class RegionPlan:
    """One region's recomputation.

    Attributes:
        required: node id -> how often the value is asked for at this level.
        order: the nodes to compute, in the order of the forward pass.
        uses: node id -> how often the recomputation itself uses the value.
        inputs: values from outside the region.
    """

    region: Region
    targets: dict[int, Node] = field(default_factory=dict)
    required: dict[int, int] = field(default_factory=dict)
    order: list[Node] = field(default_factory=list)
    uses: dict[int, int] = field(default_factory=dict)
    inputs: list[Node] = field(default_factory=list)

    def ask(self, node: Node) -> None:
        """One more use of the value of `node` at this level."""
        self.targets[node.id] = node
        self.required[node.id] = self.required.get(node.id, 0) + 1


@dataclass(slots=True)
class Plans:
    """The plans of all regions, and the uses of values that are held."""

    regions: dict[Region, RegionPlan] = field(default_factory=dict)
    top: list[Node] = field(default_factory=list)
    by_depth: dict[int, list[RegionPlan]] = field(default_factory=dict)

    def ask(self, node: Node, step_region: Region | None) -> None:
        """One more use of the value of `node` by an op in `step_region`."""
        level = common_region(step_region, node.owner)
        if level is None:
            self.top.append(node)
        else:
            if level not in self.regions:
                self.regions[level] = RegionPlan(level)
                self.by_depth.setdefault(level.depth, []).append(self.regions[level])
            self.regions[level].ask(node)

    def constants(self) -> Iterator[Node]:
        """The untracked nodes that are computed again."""
        for plan in self.regions.values():
            for node in plan.order:
                if not node.tracked:
                    yield node


def plan_regions(requests: Iterable[tuple[Node, Node]]) -> Plans:
    """The plans that serve every (step, value) asked for."""
    plans = Plans()
    for step, node in requests:
        plans.ask(node, step.region)
    for depth in range(max(plans.by_depth, default=0), 0, -1):
        for plan in plans.by_depth.get(depth, ()):
            _complete(plan)
            for node in plan.inputs:
                plans.ask(node, plan.region.parent)
    return plans


def not_held(steps: Iterable[Node]) -> Iterator[tuple[Node, Node]]:
    """(step, value) for each value that a tracked step saved without holding it."""
    for step in steps:
        if step.tracked and step.saved:
            for node, value in zip(step.saved, step.saved_values):
                if value is None:
                    yield step, node


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
    region = plan.region
    stack = list(plan.targets.values())
    seen: set[int] = set()
    inputs: dict[int, Node] = {}
    while stack:
        node = stack.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        plan.order.append(node)
        for parent in node.parents:
            if _is_inside(parent, region):
                plan.uses[parent.id] = plan.uses.get(parent.id, 0) + 1
                stack.append(parent)
            else:
                inputs[parent.id] = parent
                plan.uses[parent.id] = plan.uses.get(parent.id, 0) + 1
    plan.order.sort(key=lambda node: node.id)
    plan.inputs = list(inputs.values())


def _is_inside(node: Node, region: Region) -> bool:
    """Whether `region`, or one inside it, has to compute the value."""
    owner = node.owner
    return owner is not None and region.contains(owner)
