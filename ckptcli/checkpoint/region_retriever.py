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
    """A checkpointer for what is held, with a cache for each region that is recomputed."""

    def __init__(
        self, held: Checkpointer, plans: Plans, namespace: Namespace, sink: Sink | None
    ) -> None:
        self._held = held
        self._plans = plans.regions
        self._namespace = namespace
        self._sink = sink
        self._caches: dict[Region, dict[int, Any]] = {}

    def retrieve(self, step: Node) -> list[Any]:
        """The values that `step` saved, in its order; from here on they are the caller's."""
        values = step.saved_values
        step.saved_values = ()
        region, is_watched = step.region, self._sink is not None
        kept = []
        for node, value in zip(step.saved, values):
            if value is None or is_watched:
                level = None if value is not None else common_region(region, node.owner)
                if level is None:
                    value = self._held.answer(node, value, step)
                else:
                    value = self._recomputed(node, level, step)
            kept.append(value)
        return kept

    def _recomputed(self, node: Node, level: Region, step: Node) -> Any:
        """What `level` computes again for `step`; counts as one use."""
        visited = [] if level in self._caches else self._fill(level)
        if self._sink is not None:
            self._sink.emit(Retrieved(node.id, max(1, len(visited)), step.id))
            for visit in visited or [node]:
                self._sink.emit(Visited(visit.id))
        return self._take(level, node.id)

    def check_drained(self) -> None:
        """Raise unless every value was used as often as it was counted.

        Raises:
            CheckpointError: a value is left over.
        """
        self._held.check_drained()
        left = [region for region, cache in self._caches.items() if cache]
        unused = [region for region in self._plans if region not in self._caches]
        if left or unused:
            raise CheckpointError(
                f"the regions {[region.name for region in left + unused]} are not drained after "
                "the backward pass",
                "this is a defect of the engine, please report it with the program that shows it",
            )

    def _fill(self, level: Region) -> list[Node]:
        """Recompute `level`, and first the regions around it that it needs."""
        visited: list[Node] = []
        stack = [level]
        while stack:
            plan = self._plans[stack[-1]]
            outer = self._missing(plan)
            if outer is not None:
                stack.append(outer)
                continue
            self._recompute(plan)
            visited += plan.order
            stack.pop()
        return visited

    def _missing(self, plan: RegionPlan) -> Region | None:
        """A region around `plan`'s that has to be recomputed before it."""
        around = plan.region.parent
        if around is not None:
            for node in plan.inputs:
                level = common_region(around, node.owner)
                if level is not None and level not in self._caches:
                    return level
        return None

    def _recompute(self, plan: RegionPlan) -> None:
        """Compute what is asked of a region again; in the end its cache has that alone.

        Raises:
            CheckpointError: an op fails, which it did not in the forward pass.
        """
        region, required, uses = plan.region, plan.required, plan.uses
        values = {node.id: self._input(region, node) for node in plan.inputs}
        for node in plan.order:
            try:
                value = computed_again(node, self._namespace, values.__getitem__)
            except MemoryError:
                raise
            except Exception as error:
                raise _not_again(node, region, error) from error
            values[node.id] = value
            if self._sink is not None:
                self._sink.emit(_told(node, self._namespace.storage_id(value)))
            for parent in node.parents:
                parent_id = parent.id
                uses[parent_id] -= 1
                if not uses[parent_id] and parent_id not in required:
                    del values[parent_id]
        self._caches[region] = values

    def _input(self, region: Region, node: Node) -> Any:
        around = region.parent
        level = None if around is None else common_region(around, node.owner)
        return self._held.fetch(node) if level is None else self._take(level, node.id)

    def _take(self, level: Region, node_id: int) -> Any:
        required = self._plans[level].required
        required[node_id] -= 1
        cache = self._caches[level]
        return cache[node_id] if required[node_id] else cache.pop(node_id)


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
