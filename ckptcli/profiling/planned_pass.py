"""Measures a plan: one pass under the ledger, then a few rounds that nobody watches."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from ckptcli.autodiff.tensor import Tensor
from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger
from ckptcli.backends.workspace import Workspaces
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.measure.rounds import collector_off
from ckptcli.passes.run import OpenedPass, open_pass
from ckptcli.planning.tape.measured import Measured
from ckptcli.workloads.base import ForwardResult, Workload

ROUNDS = 5


def measure_plan(
    workload: Workload,
    strategy: Strategy,
    backend: Backend,
    budget_bytes: int | None,
    consumes: bool,
    beside_none: bool,
) -> Measured:
    """What the strategy of a plan takes; `beside_none` is whether `none` runs beside it."""
    with collector_off(), backend.quiet():
        peaks, digest = _counted(workload, strategy, backend, consumes)
        expected = (
            _counted(workload, NoCheckpointing(), backend, consumes)[1] if beside_none else None
        )
        strategies = [strategy, NoCheckpointing()] if beside_none else [strategy]
        times = _timed([open_pass(workload, s, backend) for s in strategies], backend, consumes)
    peak_bytes, ledger_bytes, host_bytes = peaks
    return Measured(
        peak_bytes=peak_bytes,
        ledger_bytes=ledger_bytes,
        host_bytes=host_bytes,
        time_s=times[0],
        none_time_s=times[1] if beside_none else None,
        within_budget=budget_bytes is None or peak_bytes <= budget_bytes,
        gradients_equal=None if expected is None else digest == expected,
    )


def _counted(
    workload: Workload, strategy: Strategy, backend: Backend, consumes: bool
) -> tuple[tuple[int, int, int], dict[str, bytes]]:
    """The peaks above what was live before, with workspace, without, and on the host; and the bytes
    of each parameter's gradient.
    """
    ledger = Ledger(Workspaces() if backend.sees_kernel_memory else None)
    opened = open_pass(workload, strategy, backend, None, ledger)
    base_bytes = ledger.bytes_in_use
    ledger.start_phase()
    result = opened.forward()
    gradients = _backward(opened, result, consumes)
    peak = ledger.peak
    with_workspace = peak.with_workspace_bytes or peak.live_bytes
    above = with_workspace - base_bytes, peak.live_bytes - base_bytes
    return (*above, ledger.host_peak_bytes), gradients


def _backward(opened: OpenedPass, result: ForwardResult, consumes: bool) -> dict[str, bytes]:
    """Each gradient's bytes on the host."""
    names = {tensor.node.id: name for name, tensor in result.parameters.items()}
    found: dict[str, bytes] = {}
    if consumes:

        def take(node_id: int, gradient: Tensor) -> None:
            if node_id in names:
                found[names[node_id]] = _bytes(gradient)

        result.root.backward(take)
        return found
    gradients = opened.backward(result)
    for name, tensor in result.parameters.items():
        gradient = gradients.wrt(tensor)
        if gradient is not None:
            found[name] = _bytes(gradient)
    return found


def _bytes(gradient: Tensor) -> bytes:
    array: Any = np.ascontiguousarray(gradient.numpy())
    content: bytes = array.tobytes()
    return content


def _timed(passes: list[OpenedPass], backend: Backend, consumes: bool) -> list[float]:
    """The median of each, in interleaved rounds after one that warms up."""
    clock = backend.clock()
    times: list[list[float]] = [[] for _ in passes]
    for _ in range(ROUNDS + 1):
        for opened, taken in zip(passes, times):
            start = clock()
            result = opened.forward()
            gradients = result.root.backward(_let_go) if consumes else opened.backward(result)
            taken.append(clock() - start)
            del result, gradients
    return [statistics.median(taken[1:]) for taken in times]


def _let_go(node_id: int, gradient: Tensor) -> None:
    """Keeps no gradient."""
