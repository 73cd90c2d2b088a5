"""Builds the checkpointer from what the visited steps saved.

Only what a step saves explicitly is required; a backup is taken when a required value is to be
computed again from it, and dropped here otherwise, before the first step runs.

Invariant: linear in the number of saved and backup entries; nothing is searched for in a list.

Source: Burn 0.22.1, `burn-autodiff/src/checkpoint/builder.rs` (stop nodes, n_required map,
insert_checkpoints).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.checkpointer import Checkpointer, WatchedCheckpointer
from ckptcli.errors import CheckpointError
from ckptcli.events import BackwardStarted, Sink
from ckptcli.graph import Node


def build(steps: list[Node], namespace: Namespace, sink: Sink | None) -> Checkpointer:
    """The checkpointer for `steps` (in emission order, root first).

    The values move from the nodes to the checkpointer: afterwards the nodes hold none.

    Raises:
        CheckpointError: a value is needed that no step saved.
    """
    values: dict[int, Any] = {}
    required: dict[int, int] = {}
    retro_forwards: dict[int, Node] = {}
    backups: list[Node] = []
    for step in steps:
        saved = step.saved
        if saved:
            for node, value in zip(saved, step.saved_values):
                if node.recompute:
                    _require(node, required, retro_forwards)
                else:
                    node_id = node.id
                    required[node_id] = required.get(node_id, 0) + 1
                    values[node_id] = value
            step.saved_values = ()
        if step.backup:
            backups.append(step)
    dropped = _take_backups(backups, required, values)
    if len(values) + len(retro_forwards) != len(required):
        _raise_missing(required, values, retro_forwards)
    if sink is None:
        return Checkpointer(values, required, retro_forwards, namespace)
    sink.emit(BackwardStarted(steps[0].id, len(steps), dict(required), tuple(dropped)))
    watched = WatchedCheckpointer(values, required, retro_forwards, namespace)
    watched.sink = sink
    return watched


def _require(node: Node, required: dict[int, int], retro_forwards: dict[int, Node]) -> None:
    """Count one use of `node`; on its first, one use of each parent too, up to held values."""
    stack = [node]
    while stack:
        current = stack.pop()
        node_id = current.id
        if node_id in required:
            required[node_id] += 1
            continue
        required[node_id] = 1
        if current.recompute:
            retro_forwards[node_id] = current
            stack.extend(current.parents)


def _take_backups(
    steps: Iterable[Node], required: dict[int, int], values: dict[int, Any]
) -> list[int]:
    """Move the backups that are required into `values`; returns the ids of those dropped."""
    dropped = []
    for step in steps:
        for node, value in zip(step.backup, step.backup_values):
            if node.recompute or node.id in values:
                continue
            if node.id in required:
                values[node.id] = value
            else:
                dropped.append(node.id)
        step.backup = step.backup_values = ()
    return dropped


def _raise_missing(
    required: dict[int, int], values: dict[int, Any], retro_forwards: dict[int, Node]
) -> None:
    missing = next(i for i in required if i not in values and i not in retro_forwards)
    raise CheckpointError(f"Node NodeId {{ value: {missing} }} is needed but never checkpointed")
