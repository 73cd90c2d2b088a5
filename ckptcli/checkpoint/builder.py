"""Builds the checkpointer from what the visited steps saved.

Only what a step saves explicitly is required. What it holds of that stays with it; what it does not
hold is counted here, and whatever that is to be computed again from. A backup is taken when it is
among these, and dropped here otherwise, before the first step runs.

Invariant: linear in the number of saved and backup entries; nothing is searched for in a list.

Source: Burn 0.22.1, `burn-autodiff/src/checkpoint/builder.rs` (stop nodes, n_required map,
insert_checkpoints).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ckptcli.backends.base import Namespace
from ckptcli.backends.host_copy import HostCopy
from ckptcli.checkpoint.checkpointer import Checkpointer, WatchedCheckpointer
from ckptcli.checkpoint.offloading import OffloadingCheckpointer, WatchedOffloadingCheckpointer
from ckptcli.checkpoint.region_plan import Plans
from ckptcli.checkpoint.region_retriever import RegionRetriever, WatchedRegionRetriever
from ckptcli.checkpoint.retriever import Retriever
from ckptcli.errors import CheckpointError
from ckptcli.events import BackwardStarted, Sink
from ckptcli.graph import Node


def build(steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
    """What answers the backward pass over `steps` (in emission order, root first).

    What values are to be computed again from moves from the nodes to the retriever.

    Raises:
        CheckpointError: a value is needed that no step saved.
    """
    states = _States()
    plans = Plans()
    backups: list[Node] = []
    for step in steps:
        for value in step.saved_values:
            if value is None:
                states.require_saved(step, plans)
                break
        if step.backup_values:
            backups.append(step)
    states.require_inputs(plans)
    dropped = states.take_backups(backups)
    states.check_complete()
    checkpointer = states.checkpointer(namespace, sink)
    if sink is not None:
        sink.emit(_started(steps, states.required, plans, dropped))
    if not plans.regions:
        return checkpointer
    if sink is None:
        return RegionRetriever(checkpointer, plans, namespace)
    return WatchedRegionRetriever(checkpointer, plans, namespace, sink)


def _started(
    steps: list[Node], counted: dict[int, int], plans: Plans, dropped: list[int]
) -> BackwardStarted:
    """The event, which counts uses of values that steps hold as well, by a region as one."""
    required = dict(counted)
    for node_id in plans.held_inputs():
        required[node_id] = required.get(node_id, 0) + 1
    for step in steps:
        for node, value in zip(step.saved, step.saved_values):
            if value is not None:
                required[node.id] = required.get(node.id, 0) + 1
    unused = tuple(node_id for node_id in dropped if node_id not in required)
    return BackwardStarted(steps[0].id, len(steps), required, unused)


class _States:
    """What the checkpointer is made of, while it is being counted."""

    __slots__ = ("offloads", "required", "retro_forwards", "values")

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}
        self.required: dict[int, int] = {}
        self.retro_forwards: dict[int, Node] = {}
        self.offloads = False

    def require_saved(self, step: Node, plans: Plans) -> None:
        """Count a use of each value that `step` saved and does not hold: those of regions are asked
        of their plans.
        """
        for node, value in zip(step.saved, step.saved_values):
            if value is None:
                if node.region is None:
                    self.require(node)
                else:
                    plans.ask(node, step.region)

    def require(self, node: Node) -> None:
        """Count one use of `node`; on its first, one use of each parent too, up to held values."""
        required = self.required
        stack = [node]
        while stack:
            current = stack.pop()
            node_id = current.id
            if node_id in required:
                required[node_id] += 1
                continue
            required[node_id] = 1
            if current.recompute:
                self.retro_forwards[node_id] = current
                stack.extend(current.parents)

    def require_inputs(self, plans: Plans) -> None:
        """Complete the plans, and require what they need from outside of all regions."""
        plans.complete()
        for node in plans.top:
            self.require(node)
            held = None if node.region is None else node.region.take_held(node)
            if held is not None:
                self.values.setdefault(node.id, held)
                self.offloads = self.offloads or isinstance(held, HostCopy)

    def take_backups(self, steps: Iterable[Node]) -> list[int]:
        """Move the backups that are required into `values`; returns the ids of those dropped."""
        values, required = self.values, self.required
        dropped = []
        for step in steps:
            for node, value in zip(step.parents, step.backup_values):
                if value is None or node.id in values:
                    continue
                if node.id in required:
                    values[node.id] = value
                else:
                    dropped.append(node.id)
            step.backup_values = ()
        return dropped

    def check_complete(self) -> None:
        """Raise `CheckpointError` if a value is required that nobody has."""
        if len(self.values) + len(self.retro_forwards) == len(self.required):
            return
        states = self.values.keys() | self.retro_forwards.keys()
        missing = next(node_id for node_id in self.required if node_id not in states)
        raise CheckpointError(
            f"Node NodeId {{ value: {missing} }} is needed but never checkpointed"
        )

    def checkpointer(self, namespace: Namespace, sink: Sink | None) -> Checkpointer:
        states = (self.values, self.required, self.retro_forwards, namespace)
        if sink is None:
            return (OffloadingCheckpointer if self.offloads else Checkpointer)(*states)
        kind = WatchedOffloadingCheckpointer if self.offloads else WatchedCheckpointer
        watched = kind(*states)
        watched.sink = sink
        return watched
