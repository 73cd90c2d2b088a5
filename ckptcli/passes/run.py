"""One pass: a workload under a strategy on a backend, opened, run forward and run backward.

Memory, timed, logged, checked, differenced and peer passes are this with another sink, or with a
ledger that counts every array. A pass that is given neither carries neither: its two halves are the
network's own forward and the root's own backward.

Invariant: opening a pass is the one place where a strategy is told which program it is for, before
anything of the pass is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.gradients import Gradients
from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.events import Sink
from ckptcli.passes.consumed import copied
from ckptcli.passes.program import WorkloadProgram
from ckptcli.workloads.base import ForwardResult, Workload


@dataclass(frozen=True, slots=True)
class OpenedPass:
    """A workload whose parameters and input are on a device; its halves run as often as asked.

    Attributes:
        strategy: as it is prepared for the program.
        device: what the workload was placed on.
        forward: the first half. It is the network's own method, so that timing it times no other;
            a strategy that is told where a pass begins is told in front of it.
        backward: the second half. Of a workload that consumes its gradients it hands each over as
            soon as it is complete.
    """

    strategy: Strategy
    device: Device
    forward: Callable[[], ForwardResult]
    backward: Callable[[ForwardResult], Gradients]


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass computed, and the strategy as it was prepared for the program."""

    loss: float
    gradients: Gradients
    result: ForwardResult
    strategy: Strategy

    def gradient_arrays(self) -> dict[str, Any]:
        """Each parameter's gradient on the host; one that no gradient reaches is left out."""
        reached = {
            name: self.gradients.wrt(tensor) for name, tensor in self.result.parameters.items()
        }
        return {name: g.numpy() for name, g in reached.items() if g is not None}

    @property
    def draws(self) -> int:
        """How many random draws the pass took."""
        return self.result.root.device.keys.drawn


def open_pass(
    workload: Workload,
    strategy: Strategy,
    backend: Backend,
    sink: Sink | None = None,
    ledger: Ledger | None = None,
    consumed: Callable[[ForwardResult], Gradients] = copied,
    watching: Callable[[Backend], Backend] | None = None,
) -> OpenedPass:
    """The workload on the backend, its node ids and random draws from 0.

    `sink` gets every event; `ledger` counts every array of the pass. `consumed` is the second half
    where the workload consumes its gradients. `watching` gives a backend that is to stand in its
    place for the pass itself.
    """
    prepared = strategy.prepared(WorkloadProgram(workload, backend))
    counted = backend if ledger is None else TrackedBackend(backend, ledger)
    counted = counted if watching is None else watching(counted)
    device = Device(counted).autodiff().gradient_checkpointing(prepared).watched_by(sink)
    forward = workload.load(device).forward
    if type(prepared).pass_begins is not Strategy.pass_begins:
        forward = partial(_begun, prepared, forward)
    return OpenedPass(prepared, device, forward, consumed if workload.consumes else _kept)


def _kept(result: ForwardResult) -> Gradients:
    return result.root.backward()


def _begun(strategy: Strategy, forward: Callable[[], ForwardResult]) -> ForwardResult:
    """The first half of a pass under a strategy that is told where it begins."""
    strategy.pass_begins()
    return forward()


def run_pass(
    workload: Workload,
    strategy: Strategy,
    backend: Backend,
    sink: Sink | None = None,
    ledger: Ledger | None = None,
) -> Pass:
    """Both halves, once."""
    opened = open_pass(workload, strategy, backend, sink, ledger)
    result = opened.forward()
    return Pass(result.loss, opened.backward(result), result, opened.strategy)
