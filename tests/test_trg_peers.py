"""The TRG in JAX beside ours: what agrees, what differs, and that the rows say which."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.peers.agreement import agreement
from ckptcli.peers.base import PeerNetwork, Values, engines, open_engines, regions_of, workloads_of
from ckptcli.peers.trg_formula import trg_steps, trg_value
from ckptcli.profiling.peer_passes import SPREADS, WIDEST, Own, own_values, rounding_spread
from ckptcli.workloads.silu import SiluWorkload
from ckptcli.workloads.trg import TrgWorkload
from tests.backend_kit import NEEDS_JAX
from tests.test_schema import check as check_schema
from tests.trg import GOLDEN, one_blas_thread, outcome

pytestmark = [pytest.mark.thinned(3), pytest.mark.usefixtures(one_blas_thread.__name__)]

SVD = "remat:policy=save_only_these_names(svd)"


def peer(engine: str, workload: TrgWorkload, strategy: str) -> PeerNetwork:
    (opened,) = open_engines([engine])
    return opened.network(workload, regions_of(parse_strategy(strategy), workload.steps))


def found(network: PeerNetwork) -> Values:
    return network.values(network.backward(network.forward()))


def with_fault(steps: int, fault: str) -> Values:
    """Ours, recomputed step by step with a fault."""
    value, gradient = outcome(steps, "remat", fault)
    return Values(value, [np.array([gradient])])


def own(workload: TrgWorkload) -> Own:
    expected = own_values(workload, device())
    return Own(expected, rounding_spread(workload, device(), expected))


# The program, without a library.


def numpy_svd(matrix: Any) -> tuple[Any, Any, Any]:
    u, s, vt = np.linalg.svd(matrix)
    return u, s, vt.T


def numpy_value(workload: TrgWorkload, sizes: Sequence[int]) -> float:
    """lnZ/N with the steps in groups of these sizes."""
    groups, first = [], 0
    for size in sizes:
        ranks = workload.ranks[first : first + size]
        groups.append(lambda tensor, ranks=ranks: trg_steps(np, numpy_svd, tensor, ranks))
        first += size
    return float(trg_value(np, workload.beta, groups))


@pytest.mark.parametrize("beta", list(GOLDEN))
@pytest.mark.parametrize("sizes", [(1,), (4,), (1, 3), (2, 2, 2)])
def test_the_shared_program_gives_the_recorded_values(beta: float, sizes: Sequence[int]) -> None:
    steps = sum(sizes)
    value = numpy_value(TrgWorkload(steps, beta=beta), sizes)
    assert value == pytest.approx(GOLDEN[beta][steps][0], rel=1e-12)


# How far rounding goes.


@pytest.mark.parametrize("steps", [1, 4, 6])
def test_rounding_is_far_below_the_tolerance_where_nothing_is_degenerate(steps: int) -> None:
    spread = own(TrgWorkload(steps)).spread
    assert SPREADS * spread < 1e-12


@pytest.mark.slow
def test_rounding_moves_the_gradient_where_a_cut_parts_equal_singular_values() -> None:
    """beta 0.3, 10 steps: (s16 - s17) / s1 is 4e-8 to 1e-10 at steps 8 to 10."""
    spread = own(TrgWorkload(10)).spread
    assert 1e-10 < spread < 1e-6


def test_rounding_is_measured_by_one_parameter_alone() -> None:
    workload = SiluWorkload(2, 4)
    assert rounding_spread(workload, device(), own_values(workload, device())) == 0.0


def test_a_gradient_that_is_nan_widens_no_tolerance() -> None:
    spread = own(TrgWorkload(3, svd_eps=0.0)).spread
    assert SPREADS * spread < 1e-12


def test_no_tolerance_is_wider_than_the_widest() -> None:
    class Network:
        tolerance = 1e-12

    values = Values(1.0, [])
    network: Any = Network()
    found = [Own(values, spread).tolerance(network) for spread in (0.0, 1e-14, 1e-8, 1.0)]
    assert found == [1e-12, 1e-12, SPREADS * 1e-8, WIDEST]


# Beside ours.


def test_the_engines_that_have_it() -> None:
    having = [name for name, engine in engines().items() if "trg" in workloads_of(engine)]
    assert having == ["jax", "jax-eager", "jax-scan"]
    assert [w for e in engines().values() for w in workloads_of(e)].count("silu") == 4


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize("engine", ["jax", "jax-eager"])
@pytest.mark.parametrize(
    ("steps", "beta", "strategy"),
    [
        (1, 0.3, "none"),
        (4, 0.5, "none"),
        (6, 0.3, "none"),
        (6, 0.44, "none"),
        (6, 0.3, SVD),
        (5, 0.44, SVD),
        (5, 0.3, "remat:policy=everything_saveable"),
    ],
)
def test_value_and_gradient_agree(engine: str, steps: int, beta: float, strategy: str) -> None:
    workload = TrgWorkload(steps, beta=beta)
    network = peer(engine, workload, strategy)
    values = found(network)
    known = agreement(own_values(workload, device()), values, "float64", network.tolerance)
    assert known.agrees, known
    assert known.tolerance == 1e-12
    lnz, gradient = GOLDEN[beta][steps]
    assert values.loss == pytest.approx(lnz, rel=1e-12)
    assert float(values.gradients[0][0]) == pytest.approx(gradient, rel=1e-12)


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["remat", "sqrt", "remat:every=5"])
def test_op_by_op_a_recomputation_is_the_same_program(strategy: str) -> None:
    workload = TrgWorkload(5)
    network = peer("jax-eager", workload, strategy)
    known = agreement(own_values(workload, device()), found(network), "float64", 1e-12)
    assert known.agrees, known


@NEEDS_JAX
@pytest.mark.slow
def test_twenty_steps_agree_to_their_own_tolerance() -> None:
    workload = TrgWorkload(20)
    network = peer("jax-eager", workload, "none")
    known = agreement(own_values(workload, device()), found(network), "float64", network.tolerance)
    assert known.agrees, known
    assert known.tolerance == 1e-11


@NEEDS_JAX
@pytest.mark.slow
def test_in_single_precision() -> None:
    workload = TrgWorkload(4, dtype="float32")
    network = peer("jax", workload, "none")
    values = found(network)
    known = agreement(own_values(workload, device()), values, "float32", network.tolerance)
    assert known.agrees, known
    assert known.tolerance == 1e-5
    assert values.gradients[0].dtype == np.float32


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", ["sign:4,a,5", "sign:4,b,0", "sign:2,a,3"])
def test_turned_signs_are_far_beyond_the_tolerance(fault: str) -> None:
    """Of ours, so that no LAPACK decides: a fault as JAX's, of the size recorded for it."""
    ours = own(TrgWorkload(5))
    known = agreement(
        ours.values, with_fault(5, fault), "float64", max(1e-12, SPREADS * ours.spread)
    )
    assert not known.agrees
    assert known.loss_relative == 0.0
    assert known.gradient_relative > 1e-5


@pytest.mark.slow
def test_turned_signs_are_found_where_rounding_is_largest() -> None:
    ours = own(TrgWorkload(10))
    wrong = with_fault(10, "sign:4,a,0")
    assert not agreement(ours.values, wrong, "float64", SPREADS * ours.spread).agrees


# What is held and computed again.


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "again"),
    [
        ("none", {}),
        ("remat", {"svd": 8, "matmul": 8}),  # the product that makes T' is not needed
        ("remat:every=4", {"svd": 8, "matmul": 11}),  # but inside a region
        (SVD, {"matmul": 8}),
        ("remat:policy=dots_saveable", {"svd": 8}),
        ("remat:every=2,last=plain", {"svd": 4, "matmul": 5}),
    ],
)
def test_what_is_computed_again(strategy: str, again: dict[str, int]) -> None:
    assert peer("jax-eager", TrgWorkload(4), strategy).measure().recomputed_by_op == again


@NEEDS_JAX
@pytest.mark.slow
def test_a_step_a_region_holds_the_tensors_between_steps() -> None:
    """2^4, 2^4, 4^4, 4^4, 16^4 elements, and scalars beside them."""
    held = peer("jax-eager", TrgWorkload(5), "remat").measure().memory.saved_bytes
    tensors = (2 * 2**4 + 2 * 4**4 + 16**4) * 8
    assert 0 <= held - tensors < 1024


# The command.


def record(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    common = ("run", "--workload", "trg", "--reps", "1", "--warmup", "0", "--json")
    code = run_command([*common, *arguments])
    captured = capsys.readouterr()
    data: dict[str, Any] = json.loads(captured.out)
    check_schema(data)
    return code, data, captured.err


@pytest.mark.long
@NEEDS_JAX
@pytest.mark.slow
def test_the_row_says_whether_jax_was_right(capsys: pytest.CaptureFixture[str]) -> None:
    """Whether a recomputed step turns signs is up to XLA and LAPACK; the word, the warning and the
    exit code have to fit the number in either case.
    """
    strategies = ("-s", "none", "-s", "remat", "-s", SVD, "-s", "balanced")
    code, data, errors = record(capsys, "--steps", "5", *strategies, "--engine", "jax")
    rows = {row["strategy"]: row for row in data["peers"]}
    known = {name: rows[name]["agreement"] for name in ("none", "remat", SVD, "balanced")}
    for entry in known.values():
        assert entry["tolerance"] == 1e-12
        assert entry["loss_relative"] <= 1e-12
        assert entry["agrees"] == (entry["gradient_relative"] <= 1e-12)
    assert known["none"]["agrees"]
    assert known[SVD]["agrees"]
    assert known["balanced"]["agrees"]
    right = known["remat"]["agrees"]
    assert code == (0 if right else 5)
    assert ("jax remat: differs from ckpt by" in errors) == (not right)
    assert rows["remat"]["recomputed_by_op"] == {"svd": 10, "matmul": 10}
    assert rows["balanced"]["recomputed_by_op"] == {}
    jax = {row["strategy"]: row for row in data["strategies"] if row["engine"] == "jax"}
    for row in jax.values():
        assert (row["exact"], row["finite_difference"]) == (
            data["strategies"][0]["exact"],
            data["strategies"][0]["finite_difference"],
        )
    if not right:
        told = jax["remat"]["judgement"]["reason"]
        assert "the checkpoint changed it: `jax none` agrees with ckpt" in told
        assert "the finite difference" in told
        assert not jax["remat"]["plain_agreement"]["agrees"]


@NEEDS_JAX
@pytest.mark.slow
def test_the_tolerance_of_a_row_widens_where_rounding_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("--steps", "10", "-s", "none", "--engine", "jax-eager")
    code, data, _ = record(capsys, *arguments)
    (row,) = data["peers"]
    assert code == 0
    assert row["agreement"]["agrees"]
    assert 1e-9 < row["agreement"]["tolerance"] < 1e-5
