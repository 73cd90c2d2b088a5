"""The memory pass as it went: a timeline of live bytes, lives of storages, the fate of each node.

The recorder notes, at each op, the ledger's tick, the time, and how high bytes in use went since
the op before; what happened between two notes belongs to the op between them. Nothing is kept of an
array but its size.

Invariant: what a note costs does not grow with the pass, and what a trace costs beyond its notes is
bounded by its longest list: entries are made for what is kept alone.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import attrgetter

from ckptcli.backends.ledger import Ledger, Storage
from ckptcli.events import (
    NodeCreated,
    Recomputed,
    Retrieved,
    StepStarted,
    ValueNamed,
    Visited,
    Watcher,
)
from ckptcli.measure.row import Cost
from ckptcli.measure.trace import Life, NodeFate, Retrieval, TimelinePoint, Trace
from ckptcli.profiling.labels import Labeller

MOST_ENTRIES = 2000
"""Of each list of a trace; a page cannot show more, and a record should stay small."""

_bytes_of = attrgetter("storage_bytes")


class _Marks:
    """The ops of the pass in order, as columns: a million of them are 60 MB."""

    __slots__ = ("ends", "highs", "nodes", "ops", "phases", "ticks", "times_s")

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.nodes = array("q")
        self.ops: list[str] = []
        self.ticks = array("q")
        self.highs = array("q")
        self.ends = array("q")
        self.times_s = array("d")

    def __len__(self) -> int:
        return len(self.ops)

    def add(self, phase: str, node: int, op: str, ledger: Ledger, time_s: float) -> None:
        """Note an op that has just ended."""
        self.phases.append(phase)
        self.nodes.append(node)
        self.ops.append(op)
        self.ticks.append(ledger.tick)
        self.highs.append(ledger.take_high_bytes())
        self.ends.append(ledger.bytes_in_use)
        self.times_s.append(time_s)

    def index_at(self, tick: int) -> int:
        """The op during which `tick` happened, at most the last."""
        return max(0, min(bisect_left(self.ticks, tick), len(self) - 1))

    def highest_of(self, start: int, stop: int) -> int:
        """Which of these ops is highest, the first of several."""
        return max(range(start, stop), key=self.highs.__getitem__)

    def point(self, index: int) -> TimelinePoint:
        """The point of one op."""
        return TimelinePoint(
            self.phases[index],
            self.nodes[index],
            self.ops[index],
            self.highs[index],
            self.ends[index],
            self.times_s[index - 1] if index else 0.0,
            self.times_s[index],
        )


@dataclass(slots=True)
class _Retrieval:
    node: int
    needed_by: int
    visited: list[int]


class PassRecorder(Watcher):
    """A sink that keeps what a trace and a cost are made of.

    `created` has every node's creation, put there before this sink gets it. Every list of the trace
    is cut to `most_entries`. The clock stands at 0 until `start_clock`. `follows_marks` is whether
    the strategy goes by Burn's op marks, so that constants may be why it holds a value.
    """

    def __init__(
        self,
        ledger: Ledger,
        created: Mapping[int, NodeCreated],
        follows_marks: bool,
        most_entries: int = MOST_ENTRIES,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(
            {
                NodeCreated: self._take_created,
                ValueNamed: self._take_name,
                StepStarted: self._take_step,
                Retrieved: self._take_retrieved,
                Visited: self._take_visited,
                Recomputed: self._take_recomputed,
            }
        )
        self.recomputed_by_op: Counter[str] = Counter()
        self._ledger = ledger
        self._follows_marks = follows_marks
        self._most = most_entries
        self._clock = clock
        self._start_s: float | None = None
        self._created = created
        self._names: dict[int, str] = {}
        self._recomputed: list[int] = []
        self._uses: dict[int, int] = {}  # of the nodes that are kept, from their creation on
        self._retrievals: list[_Retrieval] = []
        self._visited: list[int] = []
        self._cut = False
        self._marks = _Marks()
        self._step: StepStarted | None = None

    def start_clock(self) -> None:
        """The forward pass begins now: what loading the program took is no op's."""
        self._start_s = self._clock()

    def _take_created(self, event: NodeCreated) -> None:
        if len(self._uses) < self._most:
            self._uses[event.node_id] = 0
        if event.op is not None:
            self._mark("forward", event.node_id, event.op)

    def _take_name(self, event: ValueNamed) -> None:
        if event.node_id in self._uses:
            self._names[event.node_id] = event.name

    def _take_step(self, event: StepStarted) -> None:
        self.end_step()
        self._step = event

    def end_step(self) -> None:
        """The backward step that runs is over."""
        if self._step is not None:
            self._mark("backward", self._step.node_id, self._step.op)
            self._step = None

    def _take_retrieved(self, event: Retrieved) -> None:
        if event.node_id in self._uses:
            self._uses[event.node_id] += 1
        if len(self._retrievals) < self._most:
            self._visited = []
            self._retrievals.append(_Retrieval(event.node_id, event.needed_by, self._visited))
        else:
            self._visited, self._cut = [], True

    def _take_visited(self, event: Visited) -> None:
        if len(self._visited) < self._most:
            self._visited.append(event.node_id)
        else:
            self._cut = True

    def _take_recomputed(self, event: Recomputed) -> None:
        self._recomputed.append(event.node_id)
        for parent in self._created[event.node_id].parents:
            if parent in self._uses:
                self._uses[parent] += 1
        self.recomputed_by_op[event.op] += 1
        self._mark("recompute", event.node_id, event.op)

    def _mark(self, phase: str, node: int, op: str) -> None:
        time_s = 0.0 if self._start_s is None else self._clock() - self._start_s
        self._marks.add(phase, node, op, self._ledger, time_s)

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
        self, labeller: Labeller, parameters: set[int], root: int, saved: Sequence[Storage]
    ) -> Trace:
        """The trace; `saved` is what is held after forward."""
        most, marks, history = self._most, self._marks, self._ledger.history
        stride = max(1, -(-len(marks) // most))
        again = set(self._recomputed)
        lists = (marks, history, self._created)
        return Trace(
            timeline=self._timeline(stride),
            lives=self._lives(labeller, stride, saved),
            nodes=tuple(
                self._fate(self._created[node], uses, parameters, root, again)
                for node, uses in self._uses.items()
            ),
            retrievals=tuple(
                Retrieval(entry.node, entry.needed_by, tuple(entry.visited))
                for entry in self._retrievals
            ),
            cut=self._cut or any(len(entries) > most for entries in lists),
            ops_per_point=stride,
        )

    def _timeline(self, stride: int) -> tuple[TimelinePoint, ...]:
        """One point for each `stride` neighbouring ops: the one that is highest."""
        marks, count = self._marks, len(self._marks)
        return tuple(
            marks.point(marks.highest_of(start, min(start + stride, count)))
            for start in range(0, count, stride)
        )

    def _lives(self, labeller: Labeller, stride: int, saved: Sequence[Storage]) -> tuple[Life, ...]:
        """The lives of all storages, or of the largest in the order of their births."""
        history = self._ledger.history
        saved_ids = {id(storage) for storage in saved}
        is_cut = len(history) > self._most
        kept = nlargest(self._most, history, key=_bytes_of) if is_cut else history
        lives = [
            self._life(storage, labeller, stride, id(storage) in saved_ids) for storage in kept
        ]
        return tuple(sorted(lives, key=attrgetter("born")) if is_cut else lives)

    def _life(self, storage: Storage, labeller: Labeller, stride: int, saved: bool) -> Life:
        label, marks = labeller.at(storage, storage.born), self._marks
        return Life(
            label.node_id,
            label.op,
            "saved" if saved else label.why,
            storage.shape,
            storage.storage_bytes,
            marks.index_at(storage.born) // stride,
            None if storage.died is None else marks.index_at(storage.died) // stride,
        )

    def _fate(
        self, event: NodeCreated, uses: int, parameters: set[int], root: int, again: set[int]
    ) -> NodeFate:
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
        by_marks = self._follows_marks and event.memory_bound
        held = by_marks and not event.recompute and fate == "saved"
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
