"""Answers `retrieve` where regions are recomputed.

The first value asked of a region makes the region compute all that will be asked of it; each value
stays until its last use. What the region needs from outside is asked of the regions around it, and
in the end of the checkpointer, which has everything that is held.

Invariants: a region is recomputed at most once in a pass for each region that contains it; no
exception steers the recomputation; at the end nothing is left.

Source: `region_plan`; PyTorch's rules for nested checkpoints.
"""

from __future__ import annotations

from typing import Any

from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.checkpointer import Checkpointer, computed_again
from ckptcli.checkpoint.region_plan import Plans, RegionPlan
from ckptcli.checkpoint.regions import Region, common_region
from ckptcli.errors import CheckpointError
from ckptcli.events import Recomputed, Retrieved, Sink, Visited
from ckptcli.graph import Node, Operation


class RegionRetriever:
    """A checkpointer for what is held, with the plan of each region that is recomputed."""

    _sink: Sink | None = None

    def __init__(self, held: Checkpointer, plans: Plans, namespace: Namespace) -> None:
        self._held = held
        self._plans = plans.regions
        self._namespace = namespace

    def retrieve(self, step: Node) -> list[Any]:
        """The values that `step` saved, in its order; from here on they are the caller's."""
        values = step.saved_values
        step.saved_values = ()
        region = step.region
        kept = []
        for node, value in zip(step.saved, values):
            if value is None:
                owner = node.owner
                level = owner if owner is region else common_region(region, owner)
                if level is None:
                    value = self._held.fetch(node)
                else:
                    plan = self._plans[level]
                    if not plan.is_computed:
                        (self._fill if plan.inputs else self._recompute)(plan)
                    value = plan.take(node.id)
            kept.append(value)
        return kept

    def check_drained(self) -> None:
        """Raise unless every value was used as often as it was counted.

        Raises:
            CheckpointError: a value is left over.
        """
        self._held.check_drained()
        left = [p.region.name for p in self._plans.values() if p.values or not p.is_computed]
        if left:
            raise CheckpointError(
                f"the regions {left} are not drained after the backward pass",
                "this is a defect of the engine, please report it with the program that shows it",
            )

    def _fill(self, plan: RegionPlan) -> list[Node]:
        """Recompute a region, and first the regions around it that it needs; what was visited."""
        visited: list[Node] = []
        stack = [plan]
        while stack:
            plan = stack[-1]
            outer = self._missing(plan) if plan.inputs else None
            if outer is not None:
                stack.append(outer)
                continue
            self._recompute(plan)
            visited += plan.order
            stack.pop()
        return visited

    def _missing(self, plan: RegionPlan) -> RegionPlan | None:
        """That of a region around `plan`'s that has to be recomputed before it."""
        around = plan.region.parent
        for node in plan.inputs:
            level = common_region(around, node.owner)
            if level is not None and not self._plans[level].is_computed:
                return self._plans[level]
        return None

    def _recompute(self, plan: RegionPlan) -> None:
        """Compute what is asked of a region again; in the end it has the values of that alone.

        Raises:
            CheckpointError: an op fails, which it did not in the forward pass.
        """
        uses, values, sink = plan.uses, plan.values, self._sink
        for node in plan.inputs:
            values[node.id] = self._input(plan.region, node)
        for node in plan.order:
            try:
                value = computed_again(node, self._namespace, values.__getitem__)
            except MemoryError:
                raise
            except Exception as error:
                raise _not_again(node, plan.region, error) from error
            values[node.id] = value
            if sink is not None:
                sink.emit(_told(node, self._namespace.storage_id(value)))
            for parent in node.parents:
                parent_id = parent.id
                left = uses[parent_id] - 1
                if left:
                    uses[parent_id] = left
                else:
                    del values[parent_id]
        plan.is_computed = True

    def _input(self, region: Region, node: Node) -> Any:
        level = common_region(region.parent, node.owner)
        return self._held.fetch(node) if level is None else self._plans[level].take(node.id)


class WatchedRegionRetriever(RegionRetriever):
    """One that tells a sink of every retrieval, visit and recomputation."""

    _sink: Sink

    def __init__(self, held: Checkpointer, plans: Plans, namespace: Namespace, sink: Sink) -> None:
        super().__init__(held, plans, namespace)
        self._sink = sink

    def retrieve(self, step: Node) -> list[Any]:
        values = step.saved_values
        step.saved_values = ()
        return [self._answer(node, value, step) for node, value in zip(step.saved, values)]

    def _answer(self, node: Node, value: Any, step: Node) -> Any:
        level = None if value is not None else common_region(step.region, node.owner)
        if level is None:
            return self._held.answer(node, value, step)
        plan = self._plans[level]
        visited = [] if plan.is_computed else self._fill(plan)
        self._sink.emit(Retrieved(node.id, max(1, len(visited)), step.id))
        for visit in visited or [node]:
            self._sink.emit(Visited(visit.id))
        return plan.take(node.id)


def _told(node: Node, storage: int) -> Recomputed:
    op: Operation = node.op  # type: ignore[assignment]
    return Recomputed(node.id, op.name, storage)


def _not_again(node: Node, region: Region, error: Exception) -> CheckpointError:
    """The error of an op that fails in the backward pass, which it did not in the forward pass."""
    op: Operation = node.op  # type: ignore[assignment]
    return CheckpointError(
        f"node {node.id} (`{op.name}`) of region `{region.name}` cannot be computed again: {error}",
        "its op worked in the forward pass: something that it depends on has changed",
    )
