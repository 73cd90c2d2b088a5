"""One pass of a workload, and what a strategy is told about the program before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest

from ckptcli.autodiff.device import Device, device
from ckptcli.backends import open_backend
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.checkpoint.program_graph import LayerPlace, ProgramGraph
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.events import NodeCreated, Recorder
from ckptcli.measure.rounds import Plan, collector_off, run_rounds
from ckptcli.passes.run import open_pass, run_pass
from ckptcli.passes.watched import program_graph
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.profiling.timed_pass import TimedPass
from ckptcli.verify.check import check
from ckptcli.verify.fault import parse_fault
from ckptcli.verify.perturb import perturbed
from ckptcli.workloads.silu import SiluNetwork, SiluWorkload
from tests.program_kit import Opener

NUMPY = open_backend()


class Curious(Strategy):
    """Asks what the program is, and then holds everything."""

    keyword: ClassVar[str] = "curious"
    summary: ClassVar[str] = "ask for the program"
    label: ClassVar[str] = "Curious"

    def __init__(self, seen: list[ProgramGraph], is_told: bool = False) -> None:
        self.seen = seen
        self.is_told = is_told

    def prepared(self, program: Callable[[], ProgramGraph]) -> Curious:
        self.seen.append(program())
        return Curious(self.seen, is_told=True)

    def layer_regions(self, count: int) -> None:
        assert self.is_told or not self.seen, "a pass ran under the strategy that was not prepared"


class CountedWorkload(SiluWorkload):
    """The silu network, and how often it was placed on a device."""

    loads = 0

    def load(self, device: Device) -> SiluNetwork:
        CountedWorkload.loads += 1
        return super().load(device)


def test_a_pass_has_loss_gradients_and_events_from_node_0() -> None:
    recorder = Recorder()
    done = run_pass(SiluWorkload(2, 4), NoCheckpointing(), NUMPY, recorder)
    assert done.loss == float(np.sum(done.result.root.numpy()))
    arrays = done.gradient_arrays()
    assert {name: array.shape for name, array in arrays.items()} == {"w0": (4, 4), "w1": (4, 4)}
    made = [event.node_id for event in recorder.events if isinstance(event, NodeCreated)]
    assert made == list(range(len(made)))
    assert run_pass(SiluWorkload(2, 4), NoCheckpointing(), NUMPY).loss == done.loss


def test_the_halves_of_an_opened_pass_run_again_and_again() -> None:
    opened = open_pass(SiluWorkload(2, 4), parse_strategy("remat"), NUMPY)
    first, second = opened.forward(), opened.forward()
    assert first.loss == second.loss
    w0 = [opened.backward(each).wrt(each.parameters["w0"]) for each in (first, second)]
    assert w0[0] is not None
    assert w0[1] is not None
    assert np.array_equal(w0[0].numpy(), w0[1].numpy())


@pytest.mark.parametrize("name", ["none", "balanced", "remat:every=2", "segments:2", "sqrt:count"])
def test_a_strategy_for_every_program_is_its_own_preparation(name: str) -> None:
    def never() -> ProgramGraph:
        raise AssertionError("asked for the program")

    strategy = parse_strategy(name)
    assert strategy.prepared(never) is strategy


def test_a_workload_is_watched_once_for_all_passes_and_rounds() -> None:
    seen: list[ProgramGraph] = []
    workload, strategy = CountedWorkload(2, 4), Curious(seen)
    CountedWorkload.loads = 0
    memory_pass(workload, device(), strategy, workspace=False)
    subjects = {"curious": TimedPass(workload, device(), strategy)}
    run_rounds(subjects, Plan(reps=5), reference="curious")
    assert CountedWorkload.loads == 3  # watched, measured, timed
    assert len(seen) == 2
    assert seen[0] is seen[1]


def test_another_workload_is_another_program() -> None:
    """Also where it has the identity of one that is gone."""
    for n in range(1, 40):
        assert program_graph(SiluWorkload(1, n), NUMPY).nodes[0].shape == (n, n)


def test_no_account_of_a_pass_has_the_watched_one_in_it() -> None:
    workload = SiluWorkload(3, 8)
    asking = memory_pass(workload, device(), Curious([]), workspace=False)
    plain = memory_pass(workload, device(), NoCheckpointing(), workspace=False)
    assert asking.memory == plain.memory
    assert asking.outcome == plain.outcome
    assert asking.trace.lives == plain.trace.lives
    assert asking.trace.nodes == plain.trace.nodes


def test_a_check_holds_a_strategy_that_asks_for_the_program() -> None:
    seen: list[ProgramGraph] = []
    assert check(SiluWorkload(2, 4), Curious(seen), SiluWorkload(2, 4, dtype="float64")).passed
    assert [graph.nodes[0].dtype for graph in seen] == ["float32", "float64"]


def test_a_perturbed_strategy_is_prepared_and_still_perturbed() -> None:
    fault = parse_fault("ulp")
    strategy = perturbed(Curious([]), fault)
    told = strategy.prepared(lambda: program_graph(SiluWorkload(1, 2), NUMPY))
    assert isinstance(told, Curious)
    assert told.is_told
    assert "retriever" in vars(told)


def test_the_graph_is_what_the_passes_run() -> None:
    workload = SiluWorkload(2, 8)
    graph = program_graph(workload, NUMPY)
    cost = memory_pass(workload, device(), NoCheckpointing(), workspace=False).cost
    assert sum(node.flops for node in graph.nodes) == cost.forward_flops
    assert sum(node.moved_bytes for node in graph.nodes) == cost.forward_moved_bytes
    by_id = {node.id: node for node in graph.nodes}
    assert graph.loops == (2,)
    assert graph.parameters == {0, 1}
    assert by_id[graph.root].op == "sum"
    assert by_id[graph.root].layer is None
    sigmoid = by_id[4]
    assert (sigmoid.op, sigmoid.parents, sigmoid.needed) == ("sigmoid", (3,), (3,))
    assert (sigmoid.shape, sigmoid.dtype, sigmoid.value_bytes) == ((8, 8), "float32", 256)
    assert (sigmoid.layer, sigmoid.memory_bound, sigmoid.tracked) == (LayerPlace(0, 0), True, True)
    assert by_id[6].needed == (5, 1)  # what the first layer returned, and the second weight
    assert not by_id[2].tracked  # the input
    assert by_id[0].tracked


NESTED = """
def make(device):
    w = device.tensor([[1.0, 2.0], [3.0, 4.0]]).require_grad()

    def loss():
        h = w.exp()
        for layer in device.layers(3):
            for part in device.layers(2):
                h = h.transpose().sin()
            if layer == 1:
                break
        h = h.cos()
        for layer in device.layers(2):
            h = h.tanh()
        return h.sum()

    return loss
"""


def test_layers_are_those_of_the_outermost_loops_wherever_they_are_left(opened: Opener) -> None:
    graph = program_graph(opened(NESTED), NUMPY)
    assert graph.loops == (3, 2)
    layers: dict[str | None, list[LayerPlace | None]] = {}
    for node in graph.nodes:
        layers.setdefault(node.op, []).append(node.layer)
    first = [LayerPlace(0, layer) for layer in (0, 0, 1, 1)]
    assert layers["sin"] == first
    assert (layers["exp"], layers["cos"], layers["sum"]) == ([None], [None], [None])
    assert layers["tanh"] == [LayerPlace(1, 0), LayerPlace(1, 1)]
    views = [node for node in graph.nodes if node.op == "transpose"]
    assert [node.memory_of for node in views] == [node.parents[0] for node in views]


def test_the_watched_pass_needs_no_more_than_the_forward_pass_itself() -> None:
    layers, n = 16, 32
    ledger = Ledger()
    with collector_off():
        program_graph(SiluWorkload(layers, n), TrackedBackend(NUMPY, ledger))
        assert ledger.bytes_in_use == 0
    tensor_bytes = n * n * 4
    assert ledger.peak.live_bytes <= (layers + 1 + 4) * tensor_bytes
