"""Each op, and random programs, under plans: played = predicted = measured; floors are true."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ckptcli import Tensor
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.passes.run import run_pass
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.player import Player
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Simulator
from ckptcli.workloads.base import Workload
from tests.gradient_cases import CASES
from tests.helpers import same_bits, unwatched
from tests.simulated import FunctionWorkload, measured, predicted
from tests.test_planned import NUMPY, modelled, planned, schedules
from tests.test_predicted_ops import program_of_the_op


def assert_as_planned(workload: Workload, seed: int) -> None:
    workload.load(unwatched("none")).forward()  # a library allocates in its first calls
    graph = record(workload, NUMPY)
    model, simulator = modelled(graph), Simulator(graph)
    floor = ProgramProblem(graph, with_workspace=False).profile.floor().peak_bytes
    reference = run_pass(workload, parse_strategy("none"), NUMPY).gradient_arrays()
    for schedule in schedules(model, seed)[:5]:
        strategy = planned(graph, schedule)
        prediction = simulator.predict(strategy)
        assert predicted(prediction) == measured(workload, strategy)
        peak_bytes = prediction.peak_bytes - graph.base_bytes
        assert Player(model, False).play(schedule).peak_bytes == peak_bytes >= floor
        gradients = run_pass(workload, strategy, NUMPY).gradient_arrays()
        assert same_bits(gradients.values(), reference.values())


@pytest.mark.sampled(10)
@pytest.mark.parametrize("op", sorted(CASES))
def test_a_program_of_the_op_takes_what_a_schedule_says(op: str) -> None:
    assert_as_planned(program_of_the_op(CASES[op][0]), 3)


def random_program(seed: int) -> FunctionWorkload:
    """Some twenty ops on what is there, tracked and not, some of it never used again."""

    def program(*leaves: Tensor) -> Tensor:
        draws = random.Random(seed)
        values = [leaf * 1.0 for leaf in leaves]
        for layer in leaves[0].device.layers(4):
            for _ in range(5):
                values.append(_step(draws, values))
            if layer % 2 and draws.random() < 0.5:
                with values[-1].region("own"):
                    values.append(values[-1].sigmoid() * values[0])
            if draws.random() < 0.3:
                del values[draws.randrange(len(values) - 1)]
        root: Any = values[-1].sum()
        return root + values[draws.randrange(len(values))].sum()

    arrays = [np.random.default_rng(seed + place).normal(size=(4, 4)) for place in range(3)]
    return FunctionWorkload(arrays, program)


def _step(draws: random.Random, values: list[Tensor]) -> Tensor:
    a, b = draws.choice(values), draws.choice(values)
    return draws.choice(
        [
            lambda: a.matmul(b) * 0.1,
            lambda: a * b,
            lambda: a + b,
            lambda: a.sigmoid(),
            lambda: a.tanh(),
            lambda: a.transpose(),
            lambda: a.detach() * b,
            lambda: a.softmax(1),
            lambda: a.reshape([2, 8]).reshape([4, 4]),
            lambda: a.mul_scalar(0.5),
            lambda: a.sum_dim(1) * b,
        ]
    )()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_takes_what_a_schedule_says(seed: int) -> None:
    assert_as_planned(random_program(seed), seed)
