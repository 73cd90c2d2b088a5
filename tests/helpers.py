"""What several test files share: running a program watched, and reading its log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ckptcli import Device, Gradients, Tensor, device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.events import BackwardStarted, Event, Recomputed, Recorder, Retrieved, Visited
from ckptcli.graph import Node

DATA = Path(__file__).parent / "data"
STRATEGIES = ("none", "balanced")

EventType = TypeVar("EventType", bound=Event)


def watched(strategy: str) -> tuple[Device, Recorder]:
    """A device under `strategy` whose node ids start at 0, and what it did so far."""
    recorder = Recorder()
    dev = device().autodiff().gradient_checkpointing(parse_strategy(strategy))
    return dev.watched_by(recorder), recorder


def unwatched(strategy: str) -> Device:
    """The same without anybody watching, as in a timed pass."""
    return watched(strategy)[0].watched_by(None)


def leaf(dev: Device, data: Any, tracked: bool = True) -> Tensor:
    """A float64 leaf."""
    tensor = dev.tensor(data, "float64")
    return tensor.require_grad() if tracked else tensor


def backward(root: Tensor) -> Gradients:
    """`root.backward()`, short where a program is one expression."""
    return root.backward()


def gradient(gradients: Gradients, tensor: Tensor) -> Any:
    """The gradient as an array; it must be there, and have the tensor's shape and dtype."""
    found = gradients.wrt(tensor)
    assert found is not None, f"no gradient for node {tensor.node.id}"
    assert (found.shape, found.dtype) == (tensor.shape, tensor.dtype)
    return found.numpy()


def of_type(events: Sequence[Event], kind: type[EventType]) -> list[EventType]:
    """The events of one kind, in order."""
    return [event for event in events if isinstance(event, kind)]


def log_lines(events: Sequence[Event]) -> list[str]:
    """Burn's log at level full."""
    lines = []
    for event in events:
        if isinstance(event, Retrieved):
            node = f"NodeId {{ value: {event.node_id} }}"
            lines.append(f"retrieve_node_output {node}: {event.n_nodes} node(s) to compute")
        elif isinstance(event, Visited):
            lines.append(f"execute_retro_forward NodeId {{ value: {event.node_id} }}")
    return lines


def compact(events: Sequence[Event]) -> str:
    """The same log on one line: `8:3<3 4 8>` for a retrieval of node 8 that visits three nodes."""
    parts: list[str] = []
    for event in events:
        if isinstance(event, Retrieved):
            parts.append(f"{event.node_id}:{event.n_nodes}<>")
        elif isinstance(event, Visited):
            before = parts[-1].removesuffix(">")
            parts[-1] = f"{before}{'' if before.endswith('<') else ' '}{event.node_id}>"
    return " ".join(parts)


def expanded(notation: str) -> str:
    """Compact notation with each `4` or `4:1` written out as `4:1<4>`."""

    def full(match: re.Match[str]) -> str:
        node_id, count, visits = match.groups()
        return f"{node_id}:{count or 1}<{visits or node_id}>"

    return re.sub(r"(\d+)(?::(\d+))?(?:<([^>]*)>)?", full, notation)


def required(events: Sequence[Event]) -> dict[int, int]:
    """How often each node is required, from the only backward pass."""
    (started,) = of_type(events, BackwardStarted)
    return started.required


def recomputed(events: Sequence[Event]) -> list[int]:
    """The nodes that were computed again, in order."""
    return [event.node_id for event in of_type(events, Recomputed)]


def nodes_behind(root: Tensor) -> list[Node]:
    """Every node that `root` was computed from, itself included."""
    seen: dict[int, Node] = {}
    stack = [root.node]
    while stack:
        node = stack.pop()
        if node.id not in seen:
            seen[node.id] = node
            stack.extend(node.parents)
    return list(seen.values())


def held_ids(root: Tensor) -> set[int]:
    """The nodes whose values the graph behind `root` holds for the backward pass."""
    return {
        node.id
        for step in nodes_behind(root)
        for nodes, values in (
            (step.saved, step.saved_values),
            (step.parents, step.backup_values),
        )
        for node, value in zip(nodes, values)
        if value is not None
    }


def same_bits(lhs: Iterable[Any], rhs: Iterable[Any]) -> bool:
    """Whether two lists of arrays are equal in shape, dtype and every bit."""
    return [(a.shape, a.dtype, np.ascontiguousarray(a).tobytes()) for a in lhs] == [
        (b.shape, b.dtype, np.ascontiguousarray(b).tobytes()) for b in rhs
    ]
