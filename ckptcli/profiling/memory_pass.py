"""The memory pass: one untimed pass under the ledger, for one strategy.

Invariant: with the collector off, bytes in use after the pass are those before it plus the
gradients that the caller holds.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.gradients import Gradients
from ckptcli.backends.ledger import Ledger, Storage
from ckptcli.backends.memory import MemoryAccount
from ckptcli.backends.workspace import Workspaces
from ckptcli.checkpoint.lints import PassFacts, region_lints
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.unused import RunFacts
from ckptcli.events import Fanout
from ckptcli.measure.memory import AllocatorPeak, AllocatorUse, LiveTensor, Memory, PeakLive
from ckptcli.measure.rounds import collector_off
from ckptcli.measure.row import Cost, Outcome
from ckptcli.measure.trace import Trace
from ckptcli.passes.run import Pass, open_pass
from ckptcli.profiling.labels import Labeller
from ckptcli.profiling.out_of_memory import told_as_failure
from ckptcli.profiling.trace import MOST_ENTRIES, PassRecorder
from ckptcli.profiling.wavering import wavering_lints
from ckptcli.units import some
from ckptcli.workloads.base import ForwardResult, Workload

LARGEST_SHOWN = 100
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class MemoryPass:
    """What one memory pass found out."""

    memory: Memory
    outcome: Outcome
    cost: Cost
    trace: Trace
    lints: tuple[str, ...]


def memory_pass(
    workload: Workload,
    device: Device,
    strategy: Strategy,
    workspace: bool = True,
    most_entries: int = MOST_ENTRIES,
    clock: Callable[[], float] = time.perf_counter,
) -> MemoryPass:
    """Run the workload once under the ledger.

    `device` has no autodiff; the pass numbers its nodes from 0. `workspace` is whether that of
    kernels is measured too, where the backend lets tracemalloc see it; without it those peaks are
    not known. `most_entries` is where the lists of the trace are cut; by default as in a record.
    `clock` gives its times.

    Raises:
        PassOutOfMemory: with what was live when memory ran out.
    """
    backend = device.backend
    with collector_off(), backend.memory.watching():
        account = _Account(workspace and backend.sees_kernel_memory)
        recorder = PassRecorder(
            account.ledger, account.facts.created, strategy.follows_marks, most_entries, clock
        )
        with told_as_failure(backend, strategy.name, lambda: account.phase, account.live_now):
            measured = account.measure(workload, device, strategy, recorder)
    with told_as_failure(backend, strategy.name, lambda: "a pass to ask its policy again"):
        wavering = wavering_lints(workload, strategy, backend, account.facts.regions)
        more = tuple(f"{strategy.name}: {lint}" for lint in wavering)
    return replace(measured, lints=(*measured.lints, *more))


class _Account:
    """The accounts of one pass, and the phase that it is in."""

    def __init__(self, workspace: bool) -> None:
        self.ledger = Ledger(Workspaces() if workspace else None)
        self.facts = PassFacts()
        self.run_facts = RunFacts()
        self.labeller = Labeller(self.ledger, self.facts.created)
        self.phase = "loading"
        self.saved: list[Storage] = []

    def live_now(self) -> PeakLive:
        """What is live at this moment."""
        return self.live_at(self.ledger.tick)

    def live_at(self, tick: int) -> PeakLive:
        """What was live at a tick of the ledger: the largest, and the totals of all."""
        saved_ids = {id(storage) for storage in self.saved}
        live = [
            self._live_tensor(storage, tick, id(storage) in saved_ids)
            for storage in self.ledger.live_at(tick)
        ]
        bytes_by_why: Counter[str] = Counter()
        for tensor in live:
            bytes_by_why[tensor.why] += tensor.bytes
        largest = sorted(live, key=lambda tensor: -tensor.bytes)[:LARGEST_SHOWN]
        return PeakLive(
            largest=tuple(largest),
            total_bytes=sum(tensor.bytes for tensor in live),
            total_tensors=len(live),
            bytes_by_why=dict(sorted(bytes_by_why.items())),
        )

    def _live_tensor(self, storage: Storage, tick: int, saved: bool) -> LiveTensor:
        label = self.labeller.at(storage, tick)
        made = None if label.node_id is None else self.facts.created.get(label.node_id)
        why = label.why
        if why == "value":
            why = "saved" if saved else "output"
        return LiveTensor(
            label.node_id,
            label.op,
            storage.shape,
            storage.storage_bytes,
            why,
            "" if made is None else made.source,
        )

    def start_phase(self, phase: str, memory: MemoryAccount) -> None:
        self.phase = phase
        memory.start_phase()
        self.ledger.start_phase()

    def measure(
        self, workload: Workload, device: Device, strategy: Strategy, recorder: PassRecorder
    ) -> MemoryPass:
        """Run the pass."""
        ledger, labeller, allocator = self.ledger, self.labeller, device.backend.memory
        sink = Fanout(self.facts, self.run_facts, labeller, recorder)
        opened = open_pass(workload, strategy, device.backend, sink, ledger)
        labeller.label_live("input")
        base = set(ledger.live_by_id())
        params_input_bytes = ledger.bytes_in_use

        self.start_phase("forward", allocator)
        recorder.start_clock()
        result = opened.forward()
        forward_peak, after_forward_bytes = ledger.peak, ledger.bytes_in_use
        offloaded_bytes = ledger.host_bytes_in_use
        allocator_forward, allocator_after_forward = _reading(allocator), _use(allocator)
        storage_id = opened.device.namespace.storage_id
        for tensor in result.parameters.values():
            labeller.relabel(storage_id(tensor.value), "parameter")
        not_saved = base | {storage_id(result.root.value)}
        saved = [s for key, s in ledger.live_by_id().items() if key not in not_saved]
        self.saved = saved
        loss = result.loss

        self.start_phase("backward", allocator)
        gradients = opened.backward(result)
        recorder.end_step()
        memory = Memory(
            params_input_bytes=params_input_bytes,
            after_forward_bytes=after_forward_bytes,
            saved_bytes=sum(storage.storage_bytes for storage in saved),
            saved_tensors=len(saved),
            ledger_peak_forward_bytes=forward_peak.live_bytes,
            ledger_peak_backward_bytes=ledger.peak.live_bytes,
            traced_peak_forward_bytes=forward_peak.with_workspace_bytes,
            traced_peak_backward_bytes=ledger.peak.with_workspace_bytes,
            peak_live=self.live_at(ledger.peak.tick),
            after_backward_bytes=ledger.bytes_in_use,
            allocator_forward=allocator_forward,
            offloaded_bytes=offloaded_bytes,
            allocator_backward=_reading(allocator),
            allocator_after_forward=allocator_after_forward,
            allocator_after_backward=_use(allocator),
        )
        parameters = {tensor.node.id for tensor in result.parameters.values()}
        unused = [n for n, tensor in result.parameters.items() if gradients.wrt(tensor) is None]
        return MemoryPass(
            memory,
            outcome_of_pass(
                Pass(loss, gradients, result, opened.strategy), recorder.recomputed_by_op, workload
            ),
            recorder.cost(),
            recorder.trace(labeller, parameters, result.root.node.id, saved),
            (
                *_unused_lints(unused, len(parameters)),
                *(f"{strategy.name}: {lint}" for lint in self._lints(strategy, workload)),
            ),
        )

    def _lints(self, strategy: Strategy, workload: Workload) -> Iterator[str]:
        yield from strategy.lints(workload.layer_count)
        yield from region_lints(self.facts, strategy.follows_marks)
        yield from self.run_facts.lints()


def _reading(memory: MemoryAccount) -> AllocatorPeak | None:
    peak = memory.peak()
    if peak is None:
        return None
    return AllocatorPeak(peak.requested_bytes, peak.allocated_bytes, peak.reserved_bytes)


def _use(memory: MemoryAccount) -> AllocatorUse | None:
    use = memory.use()
    return None if use is None else AllocatorUse(use.in_use_bytes, use.driver_bytes)


def _unused_lints(unused: Sequence[str], parameters: int) -> Iterator[str]:
    """Of parameters without a gradient; where all are, the engine warns that nothing has one."""
    if 0 < len(unused) < parameters:
        names = some([f"`{name}`" for name in unused], MOST_NAMED)
        yield (
            f"no gradient reaches {names}: the loss never uses "
            f"{'it' if len(unused) == 1 else 'them'}, or only detached"
        )


def outcome_of_pass(done: Pass, recomputed_by_op: Mapping[str, int], workload: Workload) -> Outcome:
    """What a pass of ckpt's own computed, on the tape or as a flat program."""
    exact = workload.exact
    return Outcome(
        loss=done.loss,
        grad_sum_w0=gradient_sum(done.gradients, done.result, workload.shown_parameter),
        grad_sha256=_digest(done),
        recomputed_by_op=dict(sorted(recomputed_by_op.items())),
        gradient=_only_derivative(done.gradients, done.result),
        exact=None if exact is None else (exact.loss, exact.gradient),
    )


def _only_derivative(gradients: Gradients, result: ForwardResult) -> float | None:
    """The derivative of a program with one parameter of one element; None for any other."""
    names = list(result.parameters)
    if len(names) != 1 or math.prod(result.parameters[names[0]].shape) != 1:
        return None
    return gradient_sum(gradients, result, names[0])


def gradient_sum(gradients: Gradients, result: ForwardResult, name: str | None) -> float | None:
    """The sum of a parameter's gradient; None if there is none."""
    tensor = None if name is None else result.parameters.get(name)
    gradient = None if tensor is None else gradients.wrt(tensor)
    return None if gradient is None else float(np.sum(gradient.numpy(), dtype=np.float64))


def _digest(done: Pass) -> str:
    """SHA-256 over the bytes of all gradients in the order of the parameters."""
    digest = hashlib.sha256()
    for name, tensor in done.result.parameters.items():
        gradient = done.gradients.wrt(tensor)
        if gradient is not None:
            digest.update(f"{name}{tuple(gradient.shape)}{gradient.dtype}".encode())
            digest.update(np.ascontiguousarray(gradient.numpy()).data)
    return digest.hexdigest()
