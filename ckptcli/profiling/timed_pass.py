"""A timed pass: the workload on a device that nobody watches."""

from __future__ import annotations

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.gradients import Gradients
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.profiling.memory_pass import gradient_sum
from ckptcli.workloads.base import ForwardResult, Workload


class TimedPass:
    """A `Subject` of `ckptcli.measure.rounds`: one workload under one strategy."""

    def __init__(self, workload: Workload, device: Device, strategy: Strategy) -> None:
        unwatched = device.autodiff().gradient_checkpointing(strategy).watched_by(None)
        self._network = workload.load(unwatched)

    def forward(self) -> ForwardResult:
        return self._network.forward()

    def backward(self, state: ForwardResult) -> tuple[ForwardResult, Gradients]:
        return state, state.root.backward()

    def check(self, result: tuple[ForwardResult, Gradients]) -> float | None:
        forward, gradients = result
        return gradient_sum(gradients, forward, "w0")
