"""How long each op takes, for plans whose cost is time: the median of several forward passes.

The time of a node is what passes between its event and the one before it, the engine's own part
included; it is taken on the plain backend, which counts nothing.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from ckptcli.autodiff.device import Device
from ckptcli.backends.base import Backend
from ckptcli.events import NodeCreated, Watcher
from ckptcli.planning.tape.cost_graph import CostGraph
from ckptcli.workloads.base import Workload

PASSES = 5


def timed(graph: CostGraph, workload: Workload, backend: Backend) -> CostGraph:
    """The graph with the time of every node."""
    clock = backend.clock()
    seen: list[tuple[int, float]] = []
    watcher = Watcher({NodeCreated: lambda event: seen.append((event.node_id, clock()))})
    device = Device(backend).autodiff().watched_by(watcher)
    times: list[list[float]] = [[] for _ in graph.nodes]
    with backend.quiet():
        network = workload.load(device)
        first = len(seen)
        for _ in range(PASSES + 1):
            seen.clear()
            before = clock()
            network.forward()
            for place, (_, at) in enumerate(seen):
                times[first + place].append(at - before)
                before = at
    return replace(
        graph,
        nodes=tuple(
            replace(node, time_s=statistics.median(taken[1:]) if taken and node.op else 0.0)
            for node, taken in zip(graph.nodes, times)
        ),
    )
