"""Whole programs: predicted bytes are the ledger's, of a graph that went through JSON too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli import Device, device
from ckptcli.backends import open_backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError
from ckptcli.events import Event, NodeCreated, Recorder
from ckptcli.options.workload import WorkloadOptions
from ckptcli.passes.run import open_pass
from ckptcli.planning.tape.cost_graph import CostGraph
from ckptcli.simulation.graph_file import read, written
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Simulator
from ckptcli.workloads.base import Workload
from ckptcli.workloads.registry import open_workloads
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import compact
from tests.simulated import assert_predicted, measured, predicted, strategy_of

EXAMPLES = Path(__file__).parent.parent / "examples"
STRATEGIES = ("none", "balanced", "remat", "remat:every=2,policy=dots_saveable", "sqrt")


def opened(text: str) -> Workload:
    (workload,) = open_workloads(text, WorkloadOptions())
    return workload


def test_a_silu_network_is_predicted_to_the_byte() -> None:
    assert_predicted(SiluWorkload(8, 64), (*STRATEGIES, "random:1", "random:2"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    ["transformer.py:Model", "mlp.py:make", "recurrent.py:make", "recurrent.py:marked"],
)
def test_an_example_is_predicted_to_the_byte(program: str) -> None:
    assert_predicted(opened(f"{EXAMPLES / program}"), (*STRATEGIES, "random:1", "random:2"))


@pytest.mark.slow
def test_a_tensor_renormalisation_group_is_predicted_to_the_byte() -> None:
    (workload,) = open_workloads("trg", WorkloadOptions(steps=4, chi="4"))
    assert_predicted(workload, STRATEGIES)


def test_an_offloaded_value_is_predicted_as_off_the_device() -> None:
    text = "remat:policy=save_and_offload_only_these_names(s | p)"
    assert_predicted(SiluWorkload(3, 16), [text])


def test_the_engine_plays_the_same_log_without_arrays() -> None:
    workload = SiluWorkload(4, 16)
    simulator = Simulator(record(workload, open_backend("numpy")))
    for strategy in STRATEGIES:
        real, played = Recorder(), Recorder()
        pass_ = open_pass(workload, parse_strategy(strategy), open_backend("numpy"), real)
        pass_.backward(pass_.forward())
        simulator.predict(parse_strategy(strategy), played)
        assert compact(played.events) == compact(real.events)
        assert _made(played.events) == _made(real.events)


def _made(events: list[Event]) -> list[tuple[Any, ...]]:
    return [
        (e.node_id, e.op, e.parents, e.shape, e.dtype, e.flops, e.moved_bytes, e.recompute)
        for e in events
        if isinstance(e, NodeCreated)
    ]


def test_consumed_gradients_are_predicted_to_the_byte() -> None:
    workload = SiluWorkload(4, 16)
    graph = record(workload, open_backend("numpy"), consumes=True)
    kept = record(workload, open_backend("numpy"))
    for text in ("none", "balanced"):
        prediction = Simulator(graph).predict(strategy_of(text))
        assert prediction.peak_bytes <= Simulator(kept).predict(strategy_of(text)).peak_bytes
        assert prediction.after_backward_bytes == graph.base_bytes + 4  # the loss


def _through_json(graph: CostGraph) -> CostGraph:
    return read(json.loads(json.dumps(written(graph))))


@pytest.mark.parametrize("program", ["silu", "transformer.py:Model"])
def test_a_graph_that_went_through_json_is_the_same(program: str) -> None:
    workload = SiluWorkload(2, 16) if program == "silu" else opened(f"{EXAMPLES / program}")
    graph = record(workload, open_backend("numpy"))
    again = _through_json(graph)
    assert again == graph
    strategy = strategy_of("balanced")
    assert predicted(Simulator(again).predict(strategy)) == measured(workload, strategy)


def test_regions_whose_policies_a_file_cannot_hold_are_not_predicted_from_it() -> None:
    workload = opened(f"{EXAMPLES / 'recurrent.py'}:marked")
    simulator = Simulator(_through_json(record(workload, open_backend("numpy"))))
    with pytest.raises(UsageError, match="policies of the program's own regions"):
        simulator.predict(strategy_of("none"))


@pytest.mark.parametrize("data", [{"title": "x"}, [], 3, {"nodes": [[]], "title": 1}])
def test_what_is_no_graph_is_refused_in_one_sentence(data: Any) -> None:
    with pytest.raises(UsageError, match="no cost graph of a program"):
        read(data)


def test_the_recording_leaves_nothing_behind() -> None:
    import gc
    import weakref

    backend = open_backend("numpy")
    alive: list[weakref.ref[Any]] = []

    class Watched(SiluWorkload):
        def load(self, dev: Device) -> Any:
            network = super().load(dev)
            alive.append(weakref.ref(network.x))
            return network

    gc.disable()
    try:
        record(Watched(2, 8), backend)
    finally:
        gc.enable()
    assert alive[0]() is None
    assert device("numpy").sink is None
