"""What the engine did, as records.

An event holds numbers and names, never an array: `storage` is the identity of the memory that a
value lives in, valid at the moment of the event. Nobody watching means that no event is made.

Source of the two that Burn prints: Burn 0.22.1, `burn-autodiff/src/checkpoint/base.rs`; of the
levels: `burn-std/src/config/autodiff.rs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias


class Level(IntEnum):
    """How much of the log is wanted. Burn prints the same at medium as at basic."""

    DISABLED = 0
    BASIC = 1
    MEDIUM = 2
    FULL = 3


@dataclass(frozen=True, slots=True)
class NodeCreated:
    """A tensor was created in the forward pass, by the user (`op` is None) or by an op."""

    node_id: int
    op: str | None
    parents: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    value_bytes: int
    flops: int
    moved_bytes: int
    """Bytes that the forward reads and writes; none for a view."""
    storage: int
    tracked: bool
    memory_bound: bool
    recompute: bool
    untracked_parents: tuple[int, ...]
    """Constants among the parents; under `balanced` they make a memory-bound op be held."""
    source: str = ""
    """The line of the program that made it, `FILE:LINE`."""
    free_signs: int = 0
    """Of a decomposition, in how many columns the sign is a choice; 0 for any other value."""


@dataclass(frozen=True, slots=True)
class LayerStarted:
    """The forward pass of a network begins a layer of `count`, numbered from 0."""

    layer: int
    count: int


@dataclass(frozen=True, slots=True)
class LayersEnded:
    """The forward pass leaves the loop over layers that it entered last."""


@dataclass(frozen=True, slots=True)
class ValueNamed:
    """A value got a name that policies may ask for."""

    node_id: int
    name: str


@dataclass(frozen=True, slots=True)
class RegionClosed:
    """A region of the forward pass is complete; inner ones before those around them."""

    name: str
    depth: int
    saved: tuple[int, ...]
    """Values that its policy saves, needed or not."""
    asked_names: tuple[str, ...]
    """Names that its policy mentions."""
    nodes: tuple[int, ...]
    """Of an outer-most region the nodes made inside, inner regions' too; else none."""


@dataclass(frozen=True, slots=True)
class BackwardStarted:
    """The checkpointer is built: how often each value is required, which backups were dropped."""

    root_id: int
    n_steps: int
    required: dict[int, int]
    dropped_backups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A backward step begins."""

    node_id: int
    op: str
    evaluates_again: bool = False
    """The op's backward evaluates the op itself once more, under every strategy."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A backward step asked for a node's value; `n_nodes` stand between it and held values."""

    node_id: int
    n_nodes: int
    needed_by: int
    """The node whose backward step asks."""


@dataclass(frozen=True, slots=True)
class Visited:
    """A node on the way to the value asked for; held values are visited too."""

    node_id: int


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A value was computed again."""

    node_id: int
    op: str
    storage: int


@dataclass(frozen=True, slots=True)
class GradientRegistered:
    """A gradient was added to a node's; a leaf keeps it."""

    node_id: int
    storage: int


Event: TypeAlias = (
    NodeCreated
    | LayerStarted
    | LayersEnded
    | ValueNamed
    | RegionClosed
    | BackwardStarted
    | StepStarted
    | Retrieved
    | Visited
    | Recomputed
    | GradientRegistered
)


class Sink(Protocol):
    """Whoever watches a pass."""

    def emit(self, event: Event) -> None:
        """Take one event; called in the order in which the engine works."""


class Recorder:
    """Keeps every event, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


class Fanout:
    """Hands every event to several sinks, in their order."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = sinks

    def emit(self, event: Event) -> None:
        for sink in self.sinks:
            sink.emit(event)
