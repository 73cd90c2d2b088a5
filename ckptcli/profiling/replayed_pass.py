"""The flat program of a workload under one strategy, measured beside the tape: a row of its own.

Invariant: its loss and gradients are held against those of the tape, and its peak is its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.gradients import Gradients
from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.workspace import Workspaces
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.measure import REPLAY
from ckptcli.measure.memory import Memory
from ckptcli.measure.rounds import collector_off
from ckptcli.measure.row import Agreement, Outcome
from ckptcli.passes.run import Pass
from ckptcli.peers.agreement import TOLERANCES, agreement
from ckptcli.peers.base import Values
from ckptcli.profiling.memory_pass import MemoryPass, gradient_sum, outcome_of_pass
from ckptcli.profiling.out_of_memory import PassOutOfMemory, told_as_failure
from ckptcli.profiling.peer_passes import PeerPass, own_values
from ckptcli.replay.flat_program import FlatProgram, flat_program
from ckptcli.workloads.base import ForwardResult, Workload

Result = tuple[ForwardResult, Gradients]


class FlatRunner:
    """What runs flat programs: ckpt's own backend."""

    name: ClassVar[str] = REPLAY
    waits_for_threads: ClassVar[bool] = False  # where the backend's do, ckpt's own rows tell

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def version(self) -> str:
        return self._backend.library

    @property
    def threads(self) -> int | None:
        return None

    def is_out_of_memory(self, error: BaseException) -> bool:
        return self._backend.is_out_of_memory(error)


class FlatNetwork:
    """A flat program as what is timed."""

    splits = True

    def __init__(self, program: FlatProgram, shown_parameter: str | None) -> None:
        self.forward = program.forward
        self._program = program
        self._shown_parameter = shown_parameter

    def backward(self, state: ForwardResult) -> Result:
        return state, self._program.backward(state)

    def check(self, result: Result) -> float | None:
        forward, gradients = result
        return gradient_sum(gradients, forward, self._shown_parameter)

    def packed(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Tape:
    """What is replayed, and what it has to compute.

    Attributes:
        measured: the pass on the tape under `strategy`.
        reference: the strategy that every row of ckpt's own is compared with.
        expected: what the pass computes under that; no strategy changes it.
    """

    workload: Workload
    device: Device
    strategy: Strategy
    measured: MemoryPass
    reference: Strategy
    expected: Outcome


def replayed_pass(tape: Tape, workspace: bool) -> PeerPass:
    """The flat program, measured once under the ledger; `workspace`: that of kernels too.

    Raises:
        ReplayError: the program cannot be replayed.
    """
    backend, workload, measured = tape.device.backend, tape.workload, tape.measured
    peer = PeerPass(FlatRunner(backend), tape.strategy)
    try:
        with told_as_failure(backend, peer.name, lambda: "its memory pass"):
            program = flat_program(workload, tape.strategy, backend)
            peer.network = FlatNetwork(program, workload.shown_parameter)
            memory, done = flat_memory(program, tape.strategy, backend, workspace)
            outcome = outcome_of_pass(done, measured.outcome.recomputed_by_op or {}, workload)
            peer.row = replace(
                peer.row,
                memory=memory,
                outcome=outcome,
                cost=measured.cost,
                agreement=_agreement(outcome, done, tape),
            )
    except PassOutOfMemory as error:
        peer.fail(error.failures[0])
    return peer


def flat_memory(
    program: FlatProgram, strategy: Strategy, backend: Backend, workspace: bool = False
) -> tuple[Memory, Pass]:
    """The account of one pass of a flat program, as the tape's; and what it computed."""
    ledger, namespace = Ledger(Workspaces() if workspace else None), backend.namespace
    with collector_off(), backend.quiet():
        counted = program.on(TrackedBackend(backend, ledger))
        for array in counted.held_before():
            ledger.observe(array, namespace)
        base, base_bytes = set(ledger.live_by_id()), ledger.bytes_in_use
        ledger.start_phase()
        result = counted.forward()
        forward, after_forward_bytes = ledger.peak, ledger.bytes_in_use
        offloaded_bytes = ledger.host_bytes_in_use
        not_saved = base | {namespace.storage_id(result.root.value)}
        saved = [s.storage_bytes for key, s in ledger.live_by_id().items() if key not in not_saved]
        loss = result.loss
        ledger.start_phase()
        gradients = counted.copied_backward(result)
        backward, after_backward_bytes = ledger.peak, ledger.bytes_in_use
    memory = Memory(
        saved_bytes=sum(saved),
        saved_tensors=len(saved),
        params_input_bytes=base_bytes,
        after_forward_bytes=after_forward_bytes,
        ledger_peak_forward_bytes=forward.live_bytes,
        ledger_peak_backward_bytes=backward.live_bytes,
        traced_peak_forward_bytes=forward.with_workspace_bytes,
        traced_peak_backward_bytes=backward.with_workspace_bytes,
        peak_live=None,
        after_backward_bytes=after_backward_bytes,
        offloaded_bytes=offloaded_bytes,
    )
    return memory, Pass(loss, gradients, result, strategy)


def _agreement(found: Outcome, done: Pass, tape: Tape) -> Agreement:
    """With the tape: bit for bit, but where a library's own bits vary from run to run."""
    dtype = str(tape.workload.settings.get("dtype", "float32"))
    is_exact = tape.device.backend.is_deterministic
    tolerance = 0.0 if is_exact else TOLERANCES.get(dtype, 1e-2)
    if (found.loss, found.grad_sha256) == (tape.expected.loss, tape.expected.grad_sha256):
        return Agreement(found.loss, 0.0, 0.0, 0.0, 0.0, tolerance)
    own = own_values(tape.workload, tape.device, tape.reference)
    arrays: list[Any] = list(done.gradient_arrays().values())
    return agreement(own, Values(done.loss, arrays), dtype, tolerance)
