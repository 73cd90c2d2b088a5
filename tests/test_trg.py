"""The TRG: recorded values, bit-equal strategies, and what each of them holds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.measure.by_hand import beside_by_hand, total_of
from ckptcli.measure.saved import SavedTensor, saved_tensors
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.workloads.ising import torus
from ckptcli.workloads.trg import TrgWorkload
from ckptcli.workloads.trg_tensors import kept_ranks
from tests.strict_backend import strict_device
from tests.trg import GOLDEN, one_blas_thread, outcome

pytestmark = pytest.mark.usefixtures(one_blas_thread.__name__)

CASES = [
    pytest.param(beta, steps, marks=[pytest.mark.slow] if steps > 8 else [])
    for beta, values in GOLDEN.items()
    for steps in values
]
STRATEGIES = (
    "balanced",
    "remat",
    "remat:every=2",
    "remat:policy=everything_saveable",
    "remat:policy=dots_saveable",
    "remat:policy=dots_with_no_batch_dims_saveable",
    "remat:policy=save_only_these_names(svd)",
    "remat:policy=save_any_names_but_these(svd)",
    "remat:policy=save_from_both_policies(dots_saveable, save_only_these_names(x))",
    "sqrt",
    "segments:3",
)
KEPT_BY_HAND = {1: 968, 2: 2192, 3: 14744, 4: 33440, 5: 2790056, 6: 5546672, 8: 11059904}
TENSORS = {1: 128, 2: 256, 3: 2304, 4: 4352, 5: 528640, 6: 1052928, 8: 2101504}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("beta", "steps"), CASES)
def test_values_are_the_recorded_ones(beta: float, steps: int) -> None:
    tolerance = 1e-12 if steps <= 8 else 1e-11
    found = outcome(steps, beta=beta)
    assert found == pytest.approx(GOLDEN[beta][steps], rel=tolerance, abs=tolerance)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("beta", [0.1, 0.3, 0.44, 0.5, 1.0])
@pytest.mark.parametrize("steps", range(1, 6))
def test_nothing_is_cut_off_up_to_five_steps(beta: float, steps: int) -> None:
    exact = torus(beta, steps)
    assert outcome(steps, beta=beta) == pytest.approx((exact.loss, exact.gradient), rel=1e-12)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_changes_no_bit(strategy: str) -> None:
    for steps in (1, 3, 6):
        assert outcome(steps, strategy) == outcome(steps)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["remat", "sqrt", "remat:policy=save_only_these_names(svd)"])
def test_a_strategy_changes_no_bit_of_twenty_steps(strategy: str) -> None:
    assert outcome(20, strategy) == outcome(20)


def test_another_library_gives_the_same_values() -> None:
    network = TrgWorkload(5).load(strict_device().autodiff())
    result = network.forward()
    gradient = result.root.backward().wrt(result.parameters["beta"])
    assert gradient is not None
    found = (result.root.item(), gradient.item())
    assert found == pytest.approx(GOLDEN[0.3][5], rel=1e-12)


def test_single_precision_is_single_precise() -> None:
    found = outcome(6, dtype="float32")
    assert found == pytest.approx(GOLDEN[0.3][6], rel=1e-5)
    assert outcome(6, "remat", dtype="float32") == found


@pytest.mark.parametrize(
    ("chi", "ranks"),
    [
        (16, [2, 4, 4, 16, 16, 16]),
        (24, [2, 4, 4, 16, 24, 24]),
        (5, [2, 4, 4, 5, 5, 5]),
        (2, [2, 2, 2, 2, 2, 2]),
        (1, [1] * 6),
    ],
)
def test_ranks_grow_to_chi(chi: int, ranks: list[int]) -> None:
    assert [kept_ranks(steps, chi) for steps in range(7)] == [ranks[:n] for n in range(7)]
    sizes = [2, *ranks]
    assert all(after <= before**2 for before, after in itertools.pairwise(sizes))


@pytest.mark.parametrize("chi", [1, 3, 8])
def test_a_smaller_chi_cuts_off_and_still_differentiates(chi: int) -> None:
    h = 1e-5
    above, below = (outcome(7, beta=0.3 + s * h, chi=chi)[0] for s in (1.0, -1.0))
    assert outcome(7, chi=chi)[1] == pytest.approx((above - below) / (2 * h), rel=1e-7)
    assert outcome(7, "remat", chi=chi) == outcome(7, chi=chi)


def held(steps: int, strategy: str) -> list[SavedTensor]:
    """What `ckpt saved` lists."""
    found = memory_pass(TrgWorkload(steps), device(), parse_strategy(strategy), False, 10**6)
    listed = saved_tensors(found.trace)
    assert sum(tensor.bytes for tensor in listed) == found.memory.saved_bytes
    return listed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("steps", [*TENSORS, pytest.param(20, marks=pytest.mark.slow)])
def test_regions_of_a_step_hold_the_tensors_between_them(steps: int) -> None:
    """T_0 to T_(steps - 1), each listed by its name; everything else is below 1 KiB."""
    listed = held(steps, "remat")
    tensors = [tensor for tensor in listed if tensor.name == "t"]
    sizes = [2, *kept_ranks(steps, 16)][:steps]
    assert sorted(tensor.bytes for tensor in tensors) == [8 * size**4 for size in sizes]
    assert sum(tensor.bytes for tensor in tensors) == {**TENSORS, 20: 8392960}[steps]
    assert sum(tensor.bytes for tensor in listed if tensor.name != "t") < 1024
    assert all("recomputation" in tensor.why for tensor in tensors)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("steps", [*KEPT_BY_HAND, pytest.param(20, marks=pytest.mark.slow)])
def test_every_byte_beside_a_sweep_by_hand_is_in_a_part(steps: int) -> None:
    by_hand = TrgWorkload(steps).by_hand
    listed = held(steps, "none")
    parts = beside_by_hand(listed, by_hand.parts, by_hand.part_of, by_hand.others)
    total = total_of(parts)
    assert total.residual_bytes == {**KEPT_BY_HAND, 20: 44139296}[steps]
    assert total.replay_bytes == {**TENSORS, 20: 8392960}[steps]
    assert total.held_bytes == sum(tensor.bytes for tensor in listed)
    tensors, factors, halves, joints, others = parts
    for part in (tensors, factors, halves):
        assert part.held_bytes == part.residual_bytes
    sizes = [2, *kept_ranks(steps, 16)]
    pairs = list(itertools.pairwise(sizes))
    assert joints.held_bytes == 8 * sum(2 * size**2 * rank**2 for size, rank in pairs)
    # Of a step: the sum, its root, and both roots of singular values; of all: T_0 and the trace.
    assert others.held_bytes == 8 * (sum(2 + 2 * rank for _, rank in pairs) + 8 + 1)


def test_the_program_names_what_it_holds() -> None:
    assert {tensor.name for tensor in held(3, "none")} == {"", "t", "svd", "half", "joint"}
    assert {tensor.name for tensor in held(3, "remat:names=x")} == {"", "t", "x"}


def test_the_parameters_can_be_replaced() -> None:
    workload = TrgWorkload(3).with_parameters({"beta": np.array([0.44])})
    assert (workload.beta, workload.steps, workload.as_graph()) == (0.44, 3, None)
    assert workload.parameters()["beta"].dtype == "float64"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategies", [["none"], ["remat"]])
def test_the_lower_bound_of_memory_is_one(strategies: list[str]) -> None:
    workload = TrgWorkload(6)
    memory = memory_pass(workload, device(), parse_strategy(strategies[0])).memory
    assert 0 < workload.needed_bytes(strategies) <= memory.ledger_peak_bytes
