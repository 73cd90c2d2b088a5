"""Values that a plan moves to the host: what a schedule says is what the ledger measures, on the
device and on the host, and every bit is kept.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ckptcli import Tensor, device
from ckptcli.backends import numpy_namespace
from ckptcli.backends.ledger import Ledger
from ckptcli.checkpoint.schedule_retriever import ScheduleRetriever
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import CheckpointError, PlanError
from ckptcli.events import BroughtBack, Recorder
from ckptcli.graph import leaf_node
from ckptcli.passes.run import open_pass, run_pass
from ckptcli.planning.actions import Action
from ckptcli.planning.play.program import play
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.cost_graph import CostGraph
from ckptcli.planning.tape.drawing import FOR_EVER, draw_short
from ckptcli.planning.tape.model import TapeModel
from ckptcli.planning.tape.moving import Moving
from ckptcli.planning.tape.player import Player
from ckptcli.planning.tape.schedule import Schedule, schedule_of
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Simulator
from ckptcli.verify.check import check
from ckptcli.verify.fault import parse_fault
from ckptcli.verify.perturb import perturbed
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload
from tests.gradient_cases import CASES
from tests.helpers import compact, of_type, recomputed, same_bits, unwatched
from tests.simulated import FunctionWorkload, measured, predicted
from tests.test_planned import NUMPY, modelled, planned
from tests.test_planned_ops import random_program
from tests.test_predicted_ops import program_of_the_op

MOST = 1 << 30


def drawn(model: TapeModel, held: set[int], moved: set[int], window: int = FOR_EVER) -> Schedule:
    schedule = draw_short(model, held, window, {}, MOST, frozenset(moved))
    assert schedule is not None
    return schedule


def some(model: TapeModel, draws: random.Random) -> Schedule:
    """A third is held, half of the rest goes to the host, all else is computed again."""
    held = {value for value in model.values if draws.random() < 0.3}
    moved = {
        value
        for value in model.values
        if value not in held and model.can_move(value) and draws.random() < 0.6
    }
    return drawn(model, held, moved, draws.choice([0, 1, 4, FOR_EVER]))


def assert_as_planned(workload: Workload, seed: int) -> int:
    """Played = predicted = measured, to the byte; returns how many values were moved."""
    workload.load(unwatched("none")).forward()  # a library allocates in its first calls
    graph = record(workload, NUMPY)
    model, simulator, draws = modelled(graph), Simulator(graph), random.Random(seed)
    reference = run_pass(workload, parse_strategy("none"), NUMPY).gradient_arrays()
    count = 0
    for _ in range(3):
        schedule = some(model, draws)
        strategy = planned(graph, schedule)
        prediction = simulator.predict(strategy)
        assert predicted(prediction) == measured(workload, strategy)
        played = Player(model, False).play(schedule)
        assert played.peak_bytes == prediction.peak_bytes - graph.base_bytes
        traced_bytes = Player(model, True).play(schedule).peak_bytes
        assert traced_bytes == prediction.traced_bytes - graph.base_bytes
        assert played.held_bytes == prediction.after_forward_bytes - graph.base_bytes
        ledger = Ledger()
        gradients = run_pass(workload, strategy, NUMPY, None, ledger).gradient_arrays()
        assert ledger.host_peak_bytes == prediction.host_peak_bytes == played.host_bytes
        assert ledger.host_bytes_in_use == 0
        assert same_bits(gradients.values(), reference.values())
        count += len(schedule.moved)
    return count


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_takes_what_a_schedule_says(seed: int) -> None:
    assert_as_planned(random_program(seed), seed)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("op", sorted(CASES))
def test_a_program_of_the_op_takes_what_a_schedule_says(op: str) -> None:
    assert_as_planned(program_of_the_op(CASES[op][0]), 3)


def test_a_silu_network_takes_what_a_schedule_says() -> None:
    assert assert_as_planned(SiluWorkload(8, 32), 1) > 10


T = 8 * 1000
"""A tensor of the chain, in bytes."""


def chain() -> tuple[FunctionWorkload, CostGraph]:
    """Nodes 0 to 4: w, sin, cos, sin, sum; each step of the middle ones needs its operand."""

    def program(w: Tensor) -> Tensor:
        return w.sin().cos().sin().sum()

    workload = FunctionWorkload([np.linspace(-1.0, 1.0, 1000)], program)
    return workload, record(workload, NUMPY)


def test_a_chain_by_hand() -> None:
    """In forward an op's operand and its result are live; at its end the 8 bytes of the loss. The
    step of cos takes the gradient, the operand that it brought back and the derivative.
    """
    workload, graph = chain()
    model = modelled(graph)
    schedule = drawn(model, set(), {1, 2})
    assert list(schedule.actions()) == [
        ("to_host", 1),
        ("to_host", 2),
        ("from_host", 2),
        ("retrieve", 3, 2),
        ("free", 2),
        ("from_host", 1),
        ("retrieve", 2, 1),
        ("free", 1),
        ("retrieve", 1, 0),
        ("free", 0),
    ]
    prediction = Simulator(graph).predict(planned(graph, schedule))
    forward, after, backward = (2 * T, 8, 3 * T + 8)
    assert [figure - graph.base_bytes for figure in predicted(prediction)[:3]] == [
        *(forward, after, backward)
    ]
    assert predicted(prediction) == measured(workload, planned(graph, schedule))
    assert prediction.host_peak_bytes == 2 * T
    assert play(ProgramProblem(graph, moving=Moving(2 * T)), schedule.actions()).host == 2 * T


def test_more_on_the_host_than_is_allowed_is_refused() -> None:
    _, graph = chain()
    schedule = drawn(modelled(graph), set(), {1, 2})
    problem = ProgramProblem(graph, moving=Moving(2 * T - 1))
    with pytest.raises(PlanError, match=r"16000 bytes on the host, and 15999 are allowed"):
        play(problem, schedule.actions())


def test_moves_cost_what_bytes_cost_each_way_and_each_time() -> None:
    _, graph = chain()
    problem = ProgramProblem(graph, lambda node: 1, moving=Moving(2 * T, 0.5))
    once = drawn(problem.model, set(), {1, 2})
    assert play(problem, once.actions()).cost == problem.base_cost + 0.5 * 4 * T
    twice = replace(
        once,
        retrievals=(
            replace(once.retrievals[0], before=(2, ~2, 2)),
            *once.retrievals[1:],
        ),
    )
    assert play(problem, twice.actions()).cost == problem.base_cost + 0.5 * 5 * T
    assert schedule_of(twice.actions()) == twice


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        ([("retrieve", 3, 2), ("to_host", 1)], r"action 1 .* \['to_host', 1\]"),
        ([("from_host", 1)], r"action 0 .* \['from_host', 1\]"),
        ([("to_host", 1), ("compute", 1)], r"action 1 .* \['compute', 1\]"),
    ],
)
def test_a_move_out_of_place_is_no_action(actions: Sequence[Action], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        schedule_of(actions)


def broken(schedule: Schedule) -> dict[str, Schedule]:
    """By why it is refused."""
    first, *others = schedule.retrievals
    kept = [replace(entry, before=()) for entry in others]
    return {
        "is held as well": replace(schedule, held=frozenset({1})),
        "is never brought back": replace(schedule, moved=frozenset({1, 2, 3})),
        "lies in the memory of another, or cannot": replace(schedule, moved=frozenset({0, 1, 2})),
        "is not there": replace(schedule, retrievals=(first, *kept)),
    }


def test_a_schedule_whose_moves_are_not_possible_is_refused() -> None:
    _, graph = chain()
    problem = ProgramProblem(graph, moving=Moving(MOST))
    sound = drawn(problem.model, set(), {1, 2})
    for why, schedule in broken(sound).items():
        if why == "is not there":
            schedule = replace(schedule, moved=frozenset({2}))
        with pytest.raises(PlanError, match=why):
            play(problem, schedule.actions())


def test_a_pass_that_leaves_a_copy_on_the_host_is_not_drained() -> None:
    copied = numpy_namespace.to_host(np.ones(3))
    left, nodes = Schedule(frozenset(), (), frozenset({2})), {2: leaf_node(7, 1)}
    retriever = ScheduleRetriever(left, nodes, {}, {2: copied}, NUMPY.namespace, None)
    with pytest.raises(CheckpointError, match=r"0 retrievals .* are left over, .* nodes \[7\]"):
        retriever.check_drained()


def test_a_view_is_not_moved() -> None:
    def program(w: Tensor) -> Tensor:
        return w.reshape([10, 100]).sin().reshape([1000]).cos().sum()

    graph = record(FunctionWorkload([np.linspace(-1.0, 1.0, 1000)], program), NUMPY)
    model = modelled(graph)
    assert [node.op for node in graph.nodes if model.can_move(node.id)] == ["sin", "cos", "sum"]


@pytest.mark.usefixtures("no_collector")
def test_a_pass_that_never_goes_backward_lets_go_of_the_host_too() -> None:
    workload, graph = chain()
    strategy = planned(graph, drawn(modelled(graph), set(), {1, 2}))
    ledger = Ledger()
    opened = open_pass(workload, strategy, NUMPY, None, ledger)
    result = opened.forward()
    assert ledger.host_bytes_in_use == 2 * T
    del result
    assert ledger.host_bytes_in_use == 0


def test_what_comes_back_is_told_and_logged_as_what_is_held() -> None:
    workload = SiluWorkload(4, 16)
    graph = record(workload, NUMPY)
    model = modelled(graph)
    marked = {value for value in model.values if not model.marked(value)}
    logs, back = [], []
    for held, moved in ((marked, set()), (set(), marked)):
        recorder = Recorder()
        opened = open_pass(workload, planned(graph, drawn(model, held, moved)), NUMPY, recorder)
        opened.backward(opened.forward())
        logs.append((compact(recorder.events), recomputed(recorder.events)))
        back.append({event.node_id for event in of_type(recorder.events, BroughtBack)})
    assert logs[0] == logs[1]
    assert back == [set(), marked]


def test_rounds_go_by_positions_and_rows_tell_what_is_on_the_host() -> None:
    workload = SiluWorkload(3, 16)
    graph = record(workload, NUMPY)
    model = modelled(graph)
    strategy = planned(graph, drawn(model, set(), set(model.movable), 0))
    opened = open_pass(workload, strategy, NUMPY)
    rounds = []
    for _ in range(3):
        result = opened.forward()
        gradients = opened.backward(result)
        rounds.append([gradients.wrt(t).numpy() for t in result.parameters.values()])  # type: ignore[union-attr]
    assert all(same_bits(arrays, rounds[0]) for arrays in rounds)
    memory = memory_pass(workload, device("numpy"), strategy).memory
    assert memory.offloaded_bytes == len(strategy.schedule.moved) * 16 * 16 * 4 > 0
    assert memory.peak_live is not None
    assert memory.peak_live.bytes_by_why["saved"] > 0


def test_a_copy_that_is_spoilt_on_the_host_is_caught() -> None:
    workload = SiluWorkload(3, 16)
    graph = record(workload, NUMPY)
    model = modelled(graph)
    sound = planned(graph, drawn(model, set(), set(model.movable)))
    fault = parse_fault("host")
    precise = SiluWorkload(3, 16)
    found = check(workload, sound, precise)
    assert found.passed
    assert found.compared == len(sound.schedule.moved)
    spoilt = check(workload, perturbed(sound, fault), precise)
    assert fault.hits >= len(sound.schedule.moved)
    assert not spoilt.passed
    assert {value.node for value in spoilt.wrong_values} <= set(sound.schedule.moved)
    assert spoilt.wrong_values
    assert spoilt.gradients_apart
