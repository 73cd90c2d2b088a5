"""Predicted times: on a clock that kernels alone move, they are what a pass then takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor
from ckptcli.backends.base import Backend
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.wrapped import WrappedBackend, WrappedNamespace
from ckptcli.checkpoint.planned import strategy_of
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.passes.run import open_pass
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.choice import Choice, check_feasible, choose
from ckptcli.planning.tape.cost_graph import CostGraph
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Simulator
from ckptcli.simulation.timing import timed
from ckptcli.workloads.base import ForwardResult, Workload
from ckptcli.workloads.silu import SiluWorkload
from tests.simulated import FunctionNetwork, FunctionWorkload

SECONDS = {"matmul": 50.0, "sigmoid": 7.0}
OTHERS_S = 3.0
LOOKING_S = 2.0
"""What reading the clock takes, as much as a kernel: the more is watched, the longer it takes."""


class Clocked(WrappedNamespace):
    """NumPy, each function of which takes its own time."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend.namespace)
        self.now_s = 0.0

    def _seen(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def takes_time(*args: Any, **kwargs: Any) -> Any:
            self.now_s += SECONDS.get(name, OTHERS_S)
            return function(*args, **kwargs)

        return takes_time

    def read(self) -> float:
        self.now_s += LOOKING_S
        return self.now_s


class ClockedBackend(WrappedBackend):
    """A backend whose clock is that of its kernels."""

    def __init__(self) -> None:
        inner = NumpyBackend()
        self.ticking = Clocked(inner)
        super().__init__(inner, self.ticking)

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Any:
        return self._inner.asarray(data, dtype, copy)

    def clock(self) -> Callable[[], float]:
        return self.ticking.read


def recorded(workload: Workload, backend: Backend) -> CostGraph:
    return timed(record(workload, NumpyBackend(), workload.consumes), workload, backend)


def taken_s(workload: Workload, strategy: Strategy, backend: ClockedBackend) -> float:
    """What one pass of it takes when nobody watches."""
    opened = open_pass(workload, strategy, backend)
    begin_s = backend.ticking.now_s
    opened.backward(opened.forward())
    return backend.ticking.now_s - begin_s


@pytest.mark.parametrize("consumes", [False, True])
def test_what_a_pass_executes_adds_up_to_what_it_takes(consumes: bool) -> None:
    workload: Workload = SiluWorkload(6, 8).passing(consumes, False)
    backend = ClockedBackend()
    problem = ProgramProblem(recorded(workload, backend))
    named = {one.name: one for one in Simulator(problem.graph).named()}
    least = problem.profile.floor().peak_bytes
    choices = [choose(problem, least + more, list(named.values())) for more in (0, 600, 10**6)]
    for name in ("none", "balanced"):
        expected = taken_s(workload, parse_strategy(name), backend)
        assert named[name].time_s(problem) == pytest.approx(expected, rel=0.01)
    for choice in choices:
        strategy = strategy_of(check_feasible(choice), "plan")
        assert choice.time_s == pytest.approx(taken_s(workload, strategy, backend), rel=0.01)
    assert again_s(choices[0]) > again_s(choices[1]) > again_s(choices[2]) == 0


def again_s(choice: Choice) -> float:
    assert choice.time_s is not None
    assert choice.problem.once_time_s is not None
    return choice.time_s - choice.problem.once_time_s


def test_times_say_which_op_takes_long() -> None:
    graph = recorded(SiluWorkload(3, 8), ClockedBackend())
    times = {node.op: node.time_s for node in graph.nodes if node.op}
    assert times["matmul"] > 40 > times["sigmoid"] > times["mul"]
    steps = [(graph.nodes[step].op, time_s) for step, time_s in graph.step_times_s.items()]
    first_layer = min(time_s for op, time_s in steps if op == "matmul")
    assert max(time_s for op, time_s in steps if op == "matmul") > 90 > first_layer > 40
    assert max(time_s for op, time_s in steps if op != "matmul") < 20


class Wavering(FunctionNetwork):
    """A program that does one thing more in each pass."""

    passes = 0

    def forward(self) -> ForwardResult:
        self.passes += 1
        result = super().forward()
        root = result.root
        for _ in range(self.passes):
            root = root.exp()
        return ForwardResult(root, result.parameters)


def test_a_program_that_wavers_is_not_timed() -> None:
    def loss(x: Tensor) -> Tensor:
        return x.sum()

    class Workloads(FunctionWorkload):
        def load(self, dev: Device) -> FunctionNetwork:
            return Wavering(super().load(dev).leaves, self.function)

    graph = recorded(Workloads([np.zeros(3, "float32")], loss), NumpyBackend())
    assert not graph.is_timed
    assert ProgramProblem(graph).time_s(()) is None
