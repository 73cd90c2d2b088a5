"""What a strategy may ask about a workload's program: its graph, its costs, what others take.

Invariant: a workload is recorded once, at the first question, and forgotten with the workload.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcli.backends.base import Backend
from ckptcli.checkpoint.program_graph import ProgramGraph
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.passes.watched import program_graph
from ckptcli.workloads.base import Workload

if TYPE_CHECKING:
    from ckptcli.planning.tape.choice import Named
    from ckptcli.planning.tape.cost_graph import CostGraph
    from ckptcli.simulation.simulator import Simulator

_SIMULATORS: dict[int, Simulator] = {}
"""By the identity of a workload that lives; workloads hold arrays and cannot be keys themselves."""


class WorkloadProgram:
    """The program of a workload on a backend."""

    def __init__(self, workload: Workload, backend: Backend) -> None:
        self._workload = workload
        self._backend = backend

    def __call__(self) -> ProgramGraph:
        return program_graph(self._workload, self._backend)

    def costs(self) -> CostGraph:
        return self._simulator().graph

    def named(self) -> Sequence[Named]:
        return self._simulator().named()

    def peak_bytes(self, strategy: Strategy) -> int:
        return self._simulator().peak_bytes(strategy)

    def _simulator(self) -> Simulator:
        from ckptcli.simulation.recorder import record
        from ckptcli.simulation.simulator import Simulator

        key = id(self._workload)
        if key not in _SIMULATORS:
            _SIMULATORS[key] = Simulator(
                record(self._workload, self._backend, self._workload.consumes)
            )
            weakref.finalize(self._workload, _SIMULATORS.pop, key).atexit = False
        return _SIMULATORS[key]
