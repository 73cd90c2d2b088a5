"""What a GPU check looks at: Burn's recorded programs and the silu network, held against NumPy.

A part notes in its `Target` what does not hold and goes on.
"""

from __future__ import annotations

import gc
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.registry import open_backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.events import Event, Level, NodeCreated, Recomputed, Recorder
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan
from ckptcli.measure.row import Row
from ckptcli.profiling.profile import profile
from ckptcli.report.log import burn_line
from ckptcli.units import duration, size
from ckptcli.verify.bits import first_difference
from ckptcli.verify.check import run_to_run_spread
from ckptcli.workloads.base import Workload
from ckptcli.workloads.graph import read_graph_file
from ckptcli.workloads.graph_case import GraphCase
from ckptcli.workloads.silu import SiluWorkload

CASES = Path(__file__).parents[1] / "tests" / "data" / "burn_conformance.jsonl"
STRATEGIES = ("none", "balanced", "remat")
RELATIVE, ABSOLUTE = 1e-12, 1e-15
"""How far a float64 gradient may lie from Burn's: kernels of exp and sin differ by a few ulp."""

NARROW = 4
"""The width at which NumPy runs a network whose log and counts are compared: both know no width."""


@dataclass(slots=True)
class Target:
    """A library on a device, and what was found out about it."""

    backend: Backend
    title: str
    parts: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def hold(self, holds: bool, what: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.broken.append(what)
            print(f"  BROKEN: {what}", flush=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One pass: what the engine did, the gradients on the host, bytes in use around the pass."""

    events: Sequence[Event]
    gradients: Mapping[str, Any]
    before_bytes: int
    after_bytes: int

    @property
    def log(self) -> list[str]:
        lines = (burn_line(event, Level.FULL) for event in self.events)
        return [line for line in lines if line is not None]

    @property
    def nodes(self) -> list[tuple[Any, ...]]:
        """Every node: id, op, parents, whether it is tracked and recomputed."""
        return [
            (event.node_id, event.op, event.parents, event.tracked, event.recompute)
            for event in self.events
            if isinstance(event, NodeCreated)
        ]

    @property
    def recomputed(self) -> list[int]:
        return [event.node_id for event in self.events if isinstance(event, Recomputed)]


def run_pass(workload: Workload, backend: Backend, strategy: str) -> Outcome:
    """One pass under the ledger, with the collector off; nothing of it is left on the device."""
    ledger, recorder = Ledger(), Recorder()
    gc.disable()
    try:
        device = Device(backend).autodiff().gradient_checkpointing(parse_strategy(strategy))
        watched = device.watched_by(recorder, TrackedBackend(backend, ledger))
        network = workload.load(watched)
        before_bytes = ledger.bytes_in_use
        result = network.forward()
        gradients = result.root.backward()
        found = {name: gradients.wrt(tensor) for name, tensor in result.parameters.items()}
        arrays = {name: g.numpy().copy() for name, g in found.items() if g is not None}
        del result, gradients, found
        return Outcome(recorder.events, arrays, before_bytes, ledger.bytes_in_use)
    finally:
        gc.enable()


def conformance(target: Target, most: int) -> None:
    """Burn's recorded programs: the log, the nodes and the gradients of each."""
    recorded = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    cases = read_graph_file(str(CASES))[:most]
    worst, failed = 0.0, 0
    with target.backend.quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrackedBackwardWarning)
        for case, expected in zip(cases, recorded):
            error, complaints = _against_burn(case, expected, target.backend)
            worst = max(worst, error)
            failed += bool(complaints)
            for complaint in complaints:
                target.hold(False, f"case {case.index} ({case.strategy}): {complaint}")
    target.parts["conformance"] = {
        "cases": len(cases),
        "failed": failed,
        "worst_relative_error": worst,
    }
    print(f"  conformance: {len(cases) - failed} of {len(cases)} cases, worst {worst:.1e}")


def _against_burn(
    case: GraphCase, expected: Mapping[str, Any], backend: Backend
) -> tuple[float, list[str]]:
    """The worst relative error of its gradients, and what is wrong."""
    strategy = str(case.strategy)
    outcome = run_pass(case, backend, strategy)
    complaints = []
    if outcome.log != expected["log"]:
        complaints.append("the log is not Burn's")
    if outcome.nodes != run_pass(case, open_backend("numpy"), strategy).nodes:
        complaints.append("the nodes are not NumPy's")
    if outcome.gradients.keys() != expected["grads"].keys():
        return 0.0, [*complaints, "other leaves have gradients"]
    worst = 0.0
    for name, values in expected["grads"].items():
        apart = np.abs(outcome.gradients[name].ravel() - np.asarray(values))
        scale = np.abs(values)
        if not (apart <= ABSOLUTE + RELATIVE * scale).all():
            complaints.append(f"the gradient of leaf {name} is off by {float(apart.max()):.1e}")
        nonzero = scale > ABSOLUTE / RELATIVE
        worst = max(worst, float(np.max(apart[nonzero] / scale[nonzero], initial=0.0)))
    return worst, complaints


def network(target: Target, layers: int, n: int, max_time_s: float) -> None:
    """The silu network: figures first, then that no strategy changed anything."""
    workload = SiluWorkload(layers, n)
    record = profile(workload, STRATEGIES, backend=target.backend, plan=Plan(max_time_s=max_time_s))
    for failure in record.failures:
        target.hold(False, f"n = {n}, {failure.strategy}: {failure.message}")
    spread = _hold_outcomes(target, workload, [s.strategy for s in record.rows])
    _hold_record(target, n, record)
    target.parts.setdefault("networks", []).append(_figures(record, n, spread))
    for strategy in record.rows:
        print(f"  {record.title}: {_line(strategy)}")


def _hold_outcomes(target: Target, workload: SiluWorkload, names: Sequence[str]) -> float | None:
    """Gradients, log, counts and ledger of each strategy; returns the spread of two runs."""
    backend, numpy = target.backend, open_backend("numpy")
    narrow = SiluWorkload(workload.layers, NARROW)
    with backend.quiet():
        reference = run_pass(workload, backend, "none")
        spread = None
        if not backend.is_deterministic:
            again = run_pass(workload, backend, "none").gradients
            spread = run_to_run_spread(reference.gradients, again)
            del again
        for name in names:
            outcome = run_pass(workload, backend, name)
            expected = run_pass(narrow, numpy, name)
            where = f"n = {workload.n}, {name}"
            target.hold(outcome.log == expected.log, f"{where}: the log is not NumPy's")
            target.hold(outcome.nodes == expected.nodes, f"{where}: the nodes are not NumPy's")
            target.hold(
                outcome.recomputed == expected.recomputed,
                f"{where}: other nodes are recomputed than on NumPy",
            )
            target.hold(
                outcome.after_bytes == outcome.before_bytes,
                f"{where}: {outcome.after_bytes} bytes in use after the pass, "
                f"{outcome.before_bytes} before",
            )
            for complaint in _differences(reference.gradients, outcome.gradients, spread):
                target.hold(False, f"{where}: {complaint}")
    return spread


def _differences(
    expected: Mapping[str, Any], found: Mapping[str, Any], spread: float | None
) -> Iterator[str]:
    """What differs from the gradients of `none`: bits, or more than a few spreads of two runs."""
    if expected.keys() != found.keys():
        yield "other parameters have gradients"
        return
    for name, array in expected.items():
        difference = first_difference(array, found[name], spread)
        if difference is not None:
            yield f"the gradient of {name} is not `none`'s: {difference}"


def _hold_record(target: Target, n: int, record: RunRecord) -> None:
    """Every loss is a number, and what recomputes peaks below what does not."""
    for strategy in record.rows:
        loss = strategy.outcome.loss
        target.hold(math.isfinite(loss), f"n = {n}, {strategy.strategy}: the loss is {loss}")
    peaks = {strategy.strategy: _peak_bytes(strategy) for strategy in record.rows}
    if "none" not in peaks:
        return
    for name in peaks.keys() - {"none"}:
        target.hold(
            peaks[name] < peaks["none"],
            f"n = {n}: {name} peaks at {peaks[name]} bytes, `none` at {peaks['none']}",
        )


def _peak_bytes(strategy: Row) -> int:
    memory = strategy.memory
    return max(memory.ledger_peak_forward_bytes, memory.ledger_peak_backward_bytes)


def _figures(record: RunRecord, n: int, spread: float | None) -> dict[str, Any]:
    return {
        "title": record.title,
        "n": n,
        "spread": spread,
        "rounds": record.rounds,
        "warnings": list(record.warnings),
        "strategies": [_strategy_figures(strategy) for strategy in record.rows],
    }


def _strategy_figures(strategy: Row) -> dict[str, Any]:
    memory = asdict(strategy.memory)
    del memory["peak_live"]
    times = strategy.times or {}
    return {
        "strategy": strategy.strategy,
        "loss": strategy.outcome.loss,
        "grad_sum_w0": strategy.outcome.grad_sum_w0,
        "recomputed_by_op": strategy.outcome.recomputed_by_op,
        "memory": memory,
        "times": {f"{phase}_s": asdict(estimate) for phase, estimate in times.items()},
    }


def _line(strategy: Row) -> str:
    memory, allocator = strategy.memory, strategy.memory.allocator_backward
    reserved = None if allocator is None else allocator.reserved_bytes
    beside = "" if reserved is None else f", reserved {size(reserved)}"
    median = strategy.median_s("total")
    return (
        f"{strategy.strategy}: saved {size(memory.saved_bytes)}, peak "
        f"{size(_peak_bytes(strategy))}{beside}, "
        f"{'not timed' if median is None else duration(median)}"
    )
