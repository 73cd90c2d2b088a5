"""The figure with which a workload is refused is a lower bound of what the ledger sees."""

from __future__ import annotations

import pytest

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.workloads.base import Workload
from ckptcli.workloads.graph import read_graph_file
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import DATA, STRATEGIES

pytestmark = pytest.mark.thinned(3)


def peak_bytes(workload: Workload, strategy: str) -> int:
    memory = memory_pass(workload, device(), parse_strategy(strategy), workspace=False).memory
    return max(memory.ledger_peak_forward_bytes, memory.ledger_peak_backward_bytes)


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "strategy", [*STRATEGIES, "remat", "remat:every=2,last=plain", "segments:1", "sqrt"]
)
@pytest.mark.parametrize(("n", "batch"), [(32, 32), (32, 8), (32, 1), (16, 64), (8, 128)])
def test_the_silu_network_needs_no_more_than_its_peak(strategy: str, n: int, batch: int) -> None:
    for layers in (1, 2, 3, 8):
        kept = SiluWorkload(layers, n, batch)
        for workload in (kept, kept.passing(consumes=True, replays=False)):
            needed_bytes = workload.needed_bytes([strategy])
            peak = peak_bytes(workload, strategy)
            assert needed_bytes <= peak
            if strategy in STRATEGIES and n == batch:  # a bound that is worth having
                assert needed_bytes >= 0.99 * peak


def test_consumed_gradients_leave_a_plan_as_little_as_is_needed_of_any_strategy() -> None:
    from ckptcli.backends import open_backend
    from ckptcli.planning.problems.program import ProgramProblem
    from ckptcli.simulation.recorder import record

    for layers, n, batch in ((1, 16, 16), (2, 16, 16), (8, 16, 16), (8, 16, 64), (8, 32, 8)):
        for consumes in (False, True):
            workload = SiluWorkload(layers, n, batch).passing(consumes, replays=False)
            graph = record(workload, open_backend("numpy"), consumes)
            floor = ProgramProblem(graph, with_workspace=False).profile.floor().peak_bytes
            assert workload.needed_bytes(["remat"]) <= graph.base_bytes + floor + 4


def test_of_several_strategies_the_largest_counts() -> None:
    workload = SiluWorkload(8, 32)
    alone = [workload.needed_bytes([name]) for name in ("sqrt", "balanced", "none")]
    assert alone == sorted(alone)
    assert workload.needed_bytes(["balanced", "none", "sqrt"]) == alone[-1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ckptcli.errors.UntrackedBackwardWarning")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_recorded_graph_needs_no_more_than_its_peak(strategy: str) -> None:
    cases = read_graph_file(str(DATA / "burn_conformance.jsonl"))
    for case in cases[::20]:
        assert 0 < case.needed_bytes([strategy]) <= peak_bytes(case, strategy)
