"""What the engine did, as records.

An event holds numbers and names, never an array: `storage` is the identity of the memory that a
value lives in, valid at the moment of the event. Nobody watching means that no event is made.
Events are named tuples: a frozen dataclass takes two to five times as long to make, and there are
ten events an op.

Source of the two that Burn prints: Burn 0.22.1, `burn-autodiff/src/checkpoint/base.rs`; of the
levels: `burn-std/src/config/autodiff.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias


class Level(IntEnum):
    """How much of the log is wanted. Burn prints the same at medium as at basic."""

    DISABLED = 0
    BASIC = 1
    MEDIUM = 2
    FULL = 3


@lru_cache(1024)
def shared_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The same shape, as one object for all that are equal: a pass has many values of few."""
    return shape


class NodeCreated(NamedTuple):
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


class LayerStarted(NamedTuple):
    """The forward pass of a network begins a layer of `layer_count`, numbered from 0."""

    layer: int
    layer_count: int


class LayersEnded(NamedTuple):
    """The forward pass leaves the loop over layers that it entered last."""


class ValueNamed(NamedTuple):
    """A value got a name that policies may ask for."""

    node_id: int
    name: str


class RegionOpened(NamedTuple):
    """A region of the forward pass begins; `policy` is what it asks, told by the Python face."""

    name: str
    depth: int
    policy: Callable[..., Any]


class RegionClosed(NamedTuple):
    """A region of the forward pass is complete; inner ones before those around them."""

    name: str
    depth: int
    saved: tuple[int, ...]
    """Values that its policy saves, needed or not."""
    asked_names: tuple[str, ...]
    """Names that its policy mentions."""
    nodes: tuple[int, ...]
    """Of an outer-most region the nodes made inside, inner regions' too; else none."""
    has_own_policy: bool = False
    """Whether a function of the user's own says what is saved."""


class BackwardStarted(NamedTuple):
    """The checkpointer is built: how often each value is required, which backups were dropped."""

    root_id: int
    n_steps: int
    required: dict[int, int]
    dropped_backups: tuple[int, ...]


class StepStarted(NamedTuple):
    """A backward step begins."""

    node_id: int
    op: str
    evaluates_again: bool = False
    """The op's backward evaluates the op itself once more, under every strategy."""


class Retrieved(NamedTuple):
    """A backward step asked for a node's value; `n_nodes` stand between it and held values."""

    node_id: int
    n_nodes: int
    needed_by: int
    """The node whose backward step asks."""


class Visited(NamedTuple):
    """A node on the way to the value asked for; held values are visited too."""

    node_id: int


class Recomputed(NamedTuple):
    """A value was computed again."""

    node_id: int
    op: str
    storage: int


class BroughtBack(NamedTuple):
    """A value that was on the host is on the device again."""

    node_id: int
    storage: int


class GradientRegistered(NamedTuple):
    """A gradient was added to a node's; a leaf keeps it."""

    node_id: int
    storage: int


Event: TypeAlias = (
    NodeCreated
    | LayerStarted
    | LayersEnded
    | ValueNamed
    | RegionOpened
    | RegionClosed
    | BackwardStarted
    | StepStarted
    | Retrieved
    | Visited
    | Recomputed
    | BroughtBack
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


class Watcher:
    """A sink that takes some kinds of events, each by a function of its own."""

    def __init__(self, takes: Mapping[type, Callable[[Any], None]]) -> None:
        self.takes = takes

    def emit(self, event: Event) -> None:
        take = self.takes.get(type(event))
        if take is not None:
            take(event)


class Fanout:
    """Hands every event to several sinks, in their order, but to a watcher only what it takes."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = sinks
        self._takes: dict[type, Sequence[Callable[[Any], None]]] = {}

    def emit(self, event: Event) -> None:
        kind = type(event)
        takes = self._takes.get(kind)
        if takes is None:
            takes = self._takes[kind] = self._takes_of(kind)
        for take in takes:
            take(event)

    def _takes_of(self, kind: type) -> list[Callable[[Any], None]]:
        takes = [
            sink.takes.get(kind) if isinstance(sink, Watcher) else sink.emit for sink in self.sinks
        ]
        return [take for take in takes if take is not None]
