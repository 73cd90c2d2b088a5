"""Schedules on the tape: what a plan says is what the ledger measures, and every bit is kept."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from ckptcli.backends import open_backend
from ckptcli.checkpoint.planned import PlannedStrategy
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import CheckpointError, PlanError, UsageError
from ckptcli.events import Recorder
from ckptcli.passes.run import open_pass, run_pass
from ckptcli.planning.actions import Action
from ckptcli.planning.play.program import play
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.cost_graph import CostGraph
from ckptcli.planning.tape.drawing import FOR_EVER, draw
from ckptcli.planning.tape.model import TapeModel
from ckptcli.planning.tape.player import Player
from ckptcli.planning.tape.program import program_made
from ckptcli.planning.tape.schedule import Retrieval, Schedule, schedule_of
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Simulator
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import compact, same_bits
from tests.simulated import measured, predicted
from tests.test_predicted_programs import EXAMPLES, opened

NUMPY = open_backend("numpy")


def modelled(graph: CostGraph) -> TapeModel:
    return TapeModel(graph, [node.flops for node in graph.nodes])


def planned(graph: CostGraph, schedule: Schedule) -> PlannedStrategy:
    return PlannedStrategy(schedule, program_made(graph), sum(modelled(graph).is_loaded))


def schedules(model: TapeModel, seed: int = 0) -> list[Schedule]:
    """Of named sets and random ones, with several windows."""
    draws = random.Random(seed)
    marked = [value for value in model.values if not model.marked(value)]
    halves = [[v for v in model.values if draws.random() < 0.5] for _ in range(3)]
    return [
        draw(model, model.values),
        draw(model, marked),
        draw(model, marked, 0),
        draw(model, (), 3),
        *(draw(model, half, draws.choice([0, 1, 4, FOR_EVER])) for half in halves),
    ]


def assert_as_planned(workload: Workload) -> None:
    """Planned = played without arrays = measured, to the byte, and the gradients are none's."""
    graph = record(workload, NUMPY)
    model, simulator = modelled(graph), Simulator(graph)
    reference = run_pass(workload, parse_strategy("none"), NUMPY).gradient_arrays()
    for schedule in schedules(model):
        strategy = planned(graph, schedule)
        prediction = simulator.predict(strategy)
        assert predicted(prediction) == measured(workload, strategy)
        for with_workspace, peak in (
            (False, prediction.peak_bytes),
            (True, prediction.traced_bytes),
        ):
            played = Player(model, with_workspace).play(schedule)
            assert played.peak_bytes == peak - graph.base_bytes
        assert played.held_bytes == prediction.after_forward_bytes - graph.base_bytes
        assert sum(prediction.again.values()) == len(list(schedule.computations()))
        gradients = run_pass(workload, strategy, NUMPY).gradient_arrays()
        assert same_bits(gradients.values(), reference.values())


def test_a_silu_network_takes_what_a_schedule_says() -> None:
    assert_as_planned(SiluWorkload(8, 64))


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", ["transformer.py:Model", "mlp.py:make", "recurrent.py:make", "recurrent.py:marked"]
)
def test_an_example_takes_what_a_schedule_says(program: str) -> None:
    assert_as_planned(opened(f"{EXAMPLES / program}"))


def test_a_schedule_that_holds_what_balanced_holds_has_its_log() -> None:
    workload = SiluWorkload(4, 16)
    graph = record(workload, NUMPY)
    model = modelled(graph)
    schedule = draw(model, [value for value in model.values if not model.marked(value)])
    logs = [_log(workload, s) for s in (parse_strategy("balanced"), planned(graph, schedule))]
    assert logs[0] == logs[1]


def _log(workload: Workload, strategy: Strategy) -> str:
    recorder = Recorder()
    pass_ = open_pass(workload, strategy, NUMPY, recorder)
    pass_.backward(pass_.forward())
    return compact(recorder.events)


def test_a_schedule_goes_by_positions_in_every_round() -> None:
    workload = SiluWorkload(3, 16)
    graph = record(workload, NUMPY)
    model = modelled(graph)
    pass_ = open_pass(workload, planned(graph, draw(model, (), 0)), NUMPY)
    rounds = []
    for _ in range(3):
        result = pass_.forward()
        rounds.append(_arrays(pass_.backward(result), result))
    assert all(same_bits(arrays, rounds[0]) for arrays in rounds)


def _arrays(gradients: Any, result: Any) -> list[Any]:
    return [gradients.wrt(tensor).numpy() for tensor in result.parameters.values()]


def test_another_program_is_refused_with_the_first_difference() -> None:
    graph = record(SiluWorkload(3, 16), NUMPY)
    strategy = planned(graph, draw(modelled(graph), ()))
    with pytest.raises(UsageError, match=r"node 0 is a leaf of shape \[8, 8\].* \[16, 16\]"):
        open_pass(SiluWorkload(3, 8), strategy, NUMPY)
    with pytest.raises(UsageError, match=r"another program: node 3 is `matmul`.*a leaf"):
        open_pass(SiluWorkload(2, 16), strategy, NUMPY)


def test_a_pass_that_branches_is_refused_at_the_first_other_op() -> None:
    class Branching(SiluWorkload):
        passes = 0

        def load(self, dev: Any) -> Any:
            network = super().load(dev)
            forward = network.forward

            def branching() -> Any:
                Branching.passes += 1
                if Branching.passes > 2:
                    network.x.device.layers(1)
                    (network.weights[0] + network.weights[1]).sum()
                return forward()

            network.forward = branching  # type: ignore[method-assign]
            return network

    workload = Branching(2, 4)
    graph = record(workload, NUMPY)
    pass_ = open_pass(workload, planned(graph, draw(modelled(graph), ())), NUMPY)
    with pytest.raises(CheckpointError, match="tracked op 0 of the pass is `add`"):
        pass_.forward()


def _with(schedule: Schedule, place: int, **changes: Any) -> Schedule:
    retrievals = list(schedule.retrievals)
    before = retrievals[place]
    values = {"step": before.step, "node": before.node, "before": before.before}
    values |= {"after": before.after, **changes}
    retrievals[place] = Retrieval(**values)
    return Schedule(schedule.held, tuple(retrievals))


def test_a_schedule_that_is_not_possible_is_refused_by_its_rules_and_by_the_tape() -> None:
    workload = SiluWorkload(2, 8)
    graph = record(workload, NUMPY)
    model = modelled(graph)
    sound = draw(model, (), 0)
    last = max(place for place, entry in enumerate(sound.retrievals) if entry.before)
    broken = {
        "is not there": _with(sound, last, before=()),
        "retrieves other values": Schedule(sound.held, sound.retrievals[:-1]),
    }
    for why, schedule in broken.items():
        with pytest.raises(PlanError, match=why):
            play(ProgramProblem(graph), schedule.actions())
        with pytest.raises(CheckpointError):
            run_pass(workload, planned(graph, schedule), NUMPY)
    left = _with(sound, len(sound.retrievals) - 1, after=())
    with pytest.raises(CheckpointError, match="are left over"):
        run_pass(workload, planned(graph, left), NUMPY)


def test_a_schedule_is_read_from_its_actions() -> None:
    model = modelled(record(SiluWorkload(3, 8), NUMPY))
    for schedule in schedules(model):
        assert schedule_of(schedule.actions()) == schedule
        through_json = json.loads(json.dumps(list(schedule.actions())))
        assert schedule_of([tuple(action) for action in through_json]) == schedule


@pytest.mark.parametrize(
    "actions", [[("fly", 1)], [("hold", "x")], [("retrieve", 1)], [("compute", -1)]]
)
def test_an_action_that_is_none_is_refused(actions: Sequence[Action]) -> None:
    with pytest.raises(PlanError, match="action 0 of the plan"):
        schedule_of(actions)
