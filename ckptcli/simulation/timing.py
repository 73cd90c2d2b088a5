"""How long each op and each backward step takes, from passes of the program itself.

A watched pass says when each begins and ends, and is slower for it; a plain one beside it says how
long the whole takes. What watching costs is the same at every event, so it is taken off evenly.
Both run under `balanced`, as the recording does, and on the plain backend, which counts nothing.

Invariant: the times of a half add up to the median of its plain passes, what is computed again
under `balanced` included.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ckptcli.autodiff.device import Device
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.events import NodeCreated, Recomputed, StepStarted, Watcher
from ckptcli.planning.tape.cost_graph import CostGraph
from ckptcli.planning.tape.program import loaded_count
from ckptcli.simulation.recorder import whole_backward
from ckptcli.workloads.base import Network, Workload

LEAST_ROUNDS, MOST_ROUNDS = 3, 15
ENOUGH_S = 0.2
"""Of more rounds than the least, as many as begin within this."""


def timed(graph: CostGraph, workload: Workload, backend: Backend) -> CostGraph:
    """The graph with the time of every node and of every backward step, in seconds; without, where
    the program does something else in each pass.
    """
    device = Device(backend).autodiff().gradient_checkpointing(BalancedCheckpointing())
    with backend.quiet():
        rounds = _Rounds(workload.load(device.watched_by(None)), graph, backend.clock())
        rounds.run()
    node_times, step_times = rounds.forward.net_s(), rounds.backward.net_s()
    if node_times is None or step_times is None:
        return graph
    return replace(
        graph,
        nodes=tuple(
            replace(node, time_s=node_times.get((NodeCreated, node.id), 0.0))
            for node in graph.nodes
        ),
        step_times_s={step: step_times.get((StepStarted, step), 0.0) for step in graph.steps},
    )


Label = tuple[type, int]
"""What a stretch of a pass is of: making a node, a node's backward step, computing a node again."""

Stretch = tuple[Label, float]
"""Seconds of what."""


@dataclass(slots=True)
class _Half:
    """The forward or the backward half of each round.

    Attributes:
        watched: of each round its stretches.
        plain_s: of each round how long the half took that nobody watched.
    """

    watched: list[list[Stretch]] = field(default_factory=list)
    plain_s: list[float] = field(default_factory=list)

    def net_s(self) -> dict[Label, float] | None:
        """Of each label the median, what watching costs taken off; None where rounds differ."""
        labels = [label for label, _ in self.watched[0]]
        if any([label for label, _ in stretches] != labels for stretches in self.watched):
            return None
        medians = [statistics.median(s for _, s in same) for same in zip(*self.watched)]
        whole_s = statistics.median(self.plain_s)
        watching_s = max(0.0, sum(medians) - whole_s) / max(1, len(medians))
        net = [max(0.0, median_s - watching_s) for median_s in medians]
        scale = whole_s / sum(net) if any(net) else 0.0
        found: dict[Label, float] = defaultdict(float)
        for label, net_s in zip(labels, net):
            found[label] += net_s * scale
        return found


class _Rounds:
    """A watched pass and a plain one, in turns, after one that warms up."""

    def __init__(self, network: Network, graph: CostGraph, clock: Callable[[], float]) -> None:
        self.forward, self.backward = _Half(), _Half()
        self._network = network
        self._clock = clock
        self._consumes = graph.consumes
        self._loaded = loaded_count(graph)
        self._marks: list[tuple[type, int, float]] = []
        self._watcher = Watcher(dict.fromkeys((NodeCreated, StepStarted, Recomputed), self._mark))

    def _mark(self, event: NodeCreated | StepStarted | Recomputed) -> None:
        self._marks.append((type(event), event.node_id, self._clock()))

    def run(self) -> None:
        """As many rounds as there is time for, at least `LEAST_ROUNDS`."""
        device, _, _ = self._pass()
        begun_s = self._clock()
        for count in range(1, MOST_ROUNDS + 1):
            device.sink = self._watcher
            self._pass_told()
            device.sink = None
            _, forward_s, backward_s = self._pass()
            self.forward.plain_s.append(forward_s)
            self.backward.plain_s.append(backward_s)
            if count >= LEAST_ROUNDS and self._clock() - begun_s > ENOUGH_S:
                break

    def _pass(self) -> tuple[Device, float, float]:
        """The device that the program computes on, and the seconds of both halves."""
        clock = self._clock
        begin_s = clock()
        result = self._network.forward()
        middle_s = clock()
        gradients = whole_backward(result, self._consumes)
        end_s = clock()
        del gradients
        return result.root.device, middle_s - begin_s, end_s - middle_s

    def _pass_told(self) -> None:
        begin_s = self._clock()
        result = self._network.forward()
        made = self._taken_marks()
        middle_s = self._clock()
        gradients = whole_backward(result, self._consumes)
        end_s = self._clock()
        del result, gradients
        first = made[0][1] if made else 0
        self.forward.watched.append(self._forward_stretches(begin_s, made, first))
        self.backward.watched.append(self._backward_stretches(middle_s, end_s, first))

    def _taken_marks(self) -> list[tuple[type, int, float]]:
        taken, self._marks = self._marks, []
        return taken

    def _forward_stretches(
        self, begin_s: float, marks: list[tuple[type, int, float]], first: int
    ) -> list[Stretch]:
        """Each node's, from the one before it."""
        ends = [at_s for _, _, at_s in marks]
        begins = [begin_s, *ends]
        return [
            ((kind, node_id - first + self._loaded), end_s - start_s)
            for (kind, node_id, _), start_s, end_s in zip(marks, begins, ends)
        ]

    def _backward_stretches(self, begin_s: float, end_s: float, first: int) -> list[Stretch]:
        """A step's own, and what is computed again for it; what is before the first is its."""
        marks = self._taken_marks()
        stretches = []
        step = next((node_id for kind, node_id, _ in marks if kind is StepStarted), first)
        for kind, node_id, at_s in [*marks, (StepStarted, first, end_s)]:
            label = node_id if kind is Recomputed else step
            stretches.append(((kind, label - first + self._loaded), at_s - begin_s))
            begin_s = at_s
            step = node_id if kind is StepStarted else step
        return stretches
