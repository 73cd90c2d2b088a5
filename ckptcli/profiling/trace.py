"""The memory pass as it went: a timeline of live bytes, lives of storages, the fate of each node.

The recorder notes, at each op, the ledger's tick and the time; what happened between two notes
belongs to the op between them. Nothing is kept of an array but its size.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ckptcli.backends.ledger import Ledger, Storage
from ckptcli.events import (
    Event,
    NodeCreated,
    Recomputed,
    Retrieved,
    StepStarted,
    ValueNamed,
    Visited,
)
from ckptcli.measure.row import Cost
from ckptcli.measure.trace import Life, NodeFate, Retrieval, TimelinePoint, Trace
from ckptcli.profiling.labels import Labeller

MOST_ENTRIES = 2000
"""Of each list of a trace; a page cannot show more, and a record should stay small."""


@dataclass(slots=True)
class _Mark:
    """An op of the pass and the tick and time at which it ended."""

    phase: str
    node: int | None
    op: str | None
    tick: int
    time_s: float


@dataclass(slots=True)
class _Retrieval:
    node: int
    needed_by: int
    visited: list[int] = field(default_factory=list)


class PassRecorder:
    """A sink that keeps what a trace and a cost are made of."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.perf_counter) -> None:
        self.recomputed_by_op: Counter[str] = Counter()
        self._ledger = ledger
        self._clock = clock
        self._start_s = clock()
        self._created: dict[int, NodeCreated] = {}
        self._names: dict[int, str] = {}
        self._recomputed: list[int] = []
        self._uses: Counter[int] = Counter()
        self._retrievals: list[_Retrieval] = []
        self._marks: list[_Mark] = []
        self._step: tuple[int, str] | None = None

    def emit(self, event: Event) -> None:
        if isinstance(event, NodeCreated):
            self._created[event.node_id] = event
            if event.op is not None:
                self._mark("forward", event.node_id, event.op)
        elif isinstance(event, ValueNamed):
            self._names[event.node_id] = event.name
        elif isinstance(event, StepStarted):
            self.end_step()
            self._step = event.node_id, event.op
        elif isinstance(event, Retrieved):
            self._uses[event.node_id] += 1
            self._retrievals.append(_Retrieval(event.node_id, event.needed_by))
        elif isinstance(event, Visited):
            self._retrievals[-1].visited.append(event.node_id)
        elif isinstance(event, Recomputed):
            self._recomputed.append(event.node_id)
            self._uses.update(self._created[event.node_id].parents)
            self.recomputed_by_op[event.op] += 1
            self._mark("recompute", event.node_id, event.op)

    def end_step(self) -> None:
        """The backward step that runs is over."""
        if self._step is not None:
            self._mark("backward", *self._step)
            self._step = None

    def cost(self) -> Cost:
        """Operations and traffic of the forward, and of what was recomputed."""
        created = self._created
        return Cost(
            forward_flops=sum(event.flops for event in created.values()),
            forward_moved_bytes=sum(event.moved_bytes for event in created.values()),
            recomputed_flops=sum(created[node].flops for node in self._recomputed),
            recomputed_moved_bytes=sum(created[node].moved_bytes for node in self._recomputed),
        )

    def trace(
        self,
        labeller: Labeller,
        parameters: set[int],
        root: int,
        saved: Sequence[Storage],
        most_entries: int | None = None,
    ) -> Trace:
        """The trace, every list cut to `most_entries`; `saved` is what is held after forward."""
        most = most_entries or MOST_ENTRIES
        saved_ids = {id(storage) for storage in saved}
        stride = max(1, -(-len(self._marks) // most))
        lives = [
            self._life(storage, labeller, stride, id(storage) in saved_ids)
            for storage in self._ledger.history
        ]
        again = set(self._recomputed)
        fates = [self._fate(event, parameters, root, again) for event in self._created.values()]
        retrievals = [
            Retrieval(r.node, r.needed_by, tuple(r.visited[:most])) for r in self._retrievals
        ]
        visits = [retrieval.visited for retrieval in self._retrievals]
        lists: Sequence[Sequence[object]] = (self._marks, lives, fates, retrievals, *visits)
        return Trace(
            timeline=_thinned(self._timeline(), stride),
            lives=tuple(_largest(lives, most)),
            nodes=tuple(fates[:most]),
            retrievals=tuple(retrievals[:most]),
            cut=any(len(entries) > most for entries in lists),
            ops_per_point=stride,
        )

    def _mark(self, phase: str, node: int, op: str) -> None:
        now_s = self._clock() - self._start_s
        self._marks.append(_Mark(phase, node, op, self._ledger.tick, now_s))

    def _timeline(self) -> list[TimelinePoint]:
        """One point an op: live bytes while it ran, from the births and deaths in its ticks."""
        changes = sorted(_changes(self._ledger.history))
        points = []
        live_bytes = position = 0
        start_s = 0.0
        for mark in self._marks:
            high_bytes = live_bytes
            while position < len(changes) and changes[position][0] <= mark.tick:
                live_bytes += changes[position][1]
                high_bytes = max(high_bytes, live_bytes)
                position += 1
            points.append(
                TimelinePoint(
                    mark.phase, mark.node, mark.op, high_bytes, live_bytes, start_s, mark.time_s
                )
            )
            start_s = mark.time_s
        return points

    def _life(self, storage: Storage, labeller: Labeller, stride: int, saved: bool) -> Life:
        label = labeller.at(storage, storage.born)
        died = None if storage.died is None else self._point_at(storage.died, stride)
        return Life(
            label.node_id,
            label.op,
            "saved" if saved else label.why,
            storage.shape,
            storage.storage_bytes,
            self._point_at(storage.born, stride),
            died,
        )

    def _point_at(self, tick: int, stride: int) -> int:
        """The index of the point during which `tick` happened, at most the last."""
        low, high = 0, len(self._marks)
        while low < high:
            middle = (low + high) // 2
            if self._marks[middle].tick < tick:
                low = middle + 1
            else:
                high = middle
        return max(0, min(low, len(self._marks) - 1)) // stride

    def _fate(
        self, event: NodeCreated, parameters: set[int], root: int, again: set[int]
    ) -> NodeFate:
        uses = self._uses[event.node_id]
        if event.op is None:
            fate = "parameter" if event.node_id in parameters else "input"
        elif event.node_id == root:
            fate = "output"
        elif event.node_id in again:
            fate = "recomputed"
        elif uses:
            fate = "saved"
        else:
            fate = "dropped"
        held = event.memory_bound and not event.recompute and fate == "saved"
        return NodeFate(
            event.node_id,
            event.op,
            event.parents,
            event.shape,
            event.value_bytes,
            fate,
            uses,
            event.untracked_parents if held else (),
            event.dtype,
            event.source,
            self._names.get(event.node_id, ""),
        )


def _changes(history: Sequence[Storage]) -> list[tuple[int, int]]:
    births = [(storage.born, storage.storage_bytes) for storage in history]
    deaths = [(s.died, -s.storage_bytes) for s in history if s.died is not None]
    return births + deaths


def _largest(lives: Sequence[Life], most: int) -> list[Life]:
    if len(lives) <= most:
        return list(lives)
    kept = sorted(lives, key=lambda life: -life.bytes)[:most]
    return sorted(kept, key=lambda life: life.born)


def _thinned(points: Sequence[TimelinePoint], stride: int) -> tuple[TimelinePoint, ...]:
    """One point for each `stride` neighbours: the one that is highest."""
    return tuple(
        max(points[start : start + stride], key=lambda point: point.high_bytes)
        for start in range(0, len(points), stride)
    )
