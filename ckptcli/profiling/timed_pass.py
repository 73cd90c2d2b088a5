"""A timed pass: the two halves of a pass that nobody watches, again and again."""

from __future__ import annotations

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.gradients import Gradients
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.passes.consumed import keeping
from ckptcli.passes.run import open_pass
from ckptcli.profiling.memory_pass import gradient_sum
from ckptcli.profiling.out_of_memory import raise_told, told_as_failure
from ckptcli.workloads.base import ForwardResult, Workload


class TimedPass:
    """A `Subject` of `ckptcli.measure.rounds`: one workload under one strategy."""

    def __init__(self, workload: Workload, device: Device, strategy: Strategy) -> None:
        self._backend = device.backend
        self._strategy = strategy.name
        self._shown_parameter = workload.shown_parameter
        with told_as_failure(self._backend, self._strategy, lambda: "loading"):
            opened = open_pass(
                workload, strategy, self._backend, consumed=keeping(workload.shown_parameter)
            )
        self._forward, self._backward = opened.forward, opened.backward

    def forward(self) -> ForwardResult:
        try:
            return self._forward()
        except Exception as error:
            raise_told(self._backend, self._strategy, "a timed forward", error)

    def backward(self, state: ForwardResult) -> tuple[ForwardResult, Gradients]:
        try:
            return state, self._backward(state)
        except Exception as error:
            raise_told(self._backend, self._strategy, "a timed backward", error)

    def check(self, result: tuple[ForwardResult, Gradients]) -> float | None:
        forward, gradients = result
        return gradient_sum(gradients, forward, self._shown_parameter)
