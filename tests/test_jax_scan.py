"""Layers as turns of `lax.scan`: gradients and counts as written out, residuals stacked."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.peers.agreement import agreement
from ckptcli.peers.base import Measured, NoPeer, PeerNetwork, Values, open_engines, regions_of
from ckptcli.peers.jax_loops import check_has_loop, in_rows, repeated
from ckptcli.profiling.peer_passes import own_values
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload
from ckptcli.workloads.trg import TrgWorkload
from tests.backend_kit import NEEDS_JAX
from tests.test_schema import check as check_schema
from tests.trg import one_blas_thread

pytestmark = [pytest.mark.thinned(3), pytest.mark.usefixtures(one_blas_thread.__name__)]

SVD = "remat:policy=save_only_these_names(svd)"


def peer(workload: Workload, strategy: str, engine: str = "jax-scan") -> PeerNetwork:
    (opened,) = open_engines([engine])
    return opened.network(workload, regions_of(parse_strategy(strategy), workload.layer_count))


def found(network: PeerNetwork) -> Values:
    return network.values(network.backward(network.forward()))


# Which parts are a loop.


@pytest.mark.parametrize(
    ("kinds", "rows"),
    [
        ([], []),
        (["a"], [(0, 1)]),
        (["a", "a", "b", "b", "b", "a"], [(0, 2), (2, 3), (5, 1)]),
        ([None, None, "a", "a", None], [(0, 1), (1, 1), (2, 2), (4, 1)]),
    ],
)
def test_rows_of_equal_parts(kinds: list[str | None], rows: list[tuple[int, int]]) -> None:
    assert in_rows(kinds) == rows


@given(st.lists(st.sampled_from([None, 1, 2])))
def test_rows_have_every_part_once_and_alike(kinds: list[int | None]) -> None:
    rows = in_rows(kinds)
    assert [place for first, count in rows for place in range(first, first + count)] == list(
        range(len(kinds))
    )
    for first, count in rows:
        assert count == 1 or (kinds[first] is not None)
        assert set(kinds[first : first + count]) == {kinds[first]}
    for (first, _), (after, _) in itertools.pairwise(rows):
        assert kinds[after] is None or kinds[first] != kinds[after]


def test_one_turn_is_no_loop() -> None:
    def body(carried: Any, inputs: Any) -> tuple[Any, Any]:
        return carried, inputs

    assert repeated(body, 1) is body
    check_has_loop([1, 2])
    for turns in ([], [1, 1]):
        with pytest.raises(NoPeer, match="no two layers in a row are alike"):
            check_has_loop(turns)


# Counts inside a loop, by hand.


@NEEDS_JAX
@pytest.mark.slow
def test_what_a_body_computes_counts_once_a_turn() -> None:
    import jax
    from jax import lax

    from ckptcli.peers.jax_residuals import primitive_calls

    def inner(h: Any, _: Any) -> tuple[Any, Any]:
        return lax.cos(h), lax.tanh(h)

    def outer(h: Any, _: Any) -> tuple[Any, Any]:
        return lax.scan(inner, lax.sin(h), None, length=4)

    def program(x: Any) -> Any:
        h, _ = lax.scan(outer, lax.exp(x), None, length=3)
        return lax.while_loop(lambda h: h[0] < 9.0, lambda h: h + lax.log(h), h)

    calls = primitive_calls(jax.make_jaxpr(program)(np.ones(5, "float32")).jaxpr)
    names = ("exp", "sin", "cos", "tanh", "scan", "log")
    assert [calls[name] for name in names] == [1, 3, 12, 12, 1 + 3, 1]


@NEEDS_JAX
@pytest.mark.slow
def test_residuals_of_a_loop_count_with_the_bytes_of_all_its_turns() -> None:
    """h becomes sin(h * w), 5 turns, 7 elements of 4 bytes. Without a checkpoint a turn keeps h for
    the gradient of w, and cos(h * w); with one, h alone. All w are an argument.
    """
    import jax
    from jax import lax

    from ckptcli.peers.jax_residuals import residuals

    def body(h: Any, w: Any) -> tuple[Any, None]:
        return lax.sin(h * w), None

    def counts(body: Any) -> tuple[int, int, int]:
        def loss(weights: Any, x: Any) -> Any:
            return lax.scan(body, x, weights[0])[0].sum()

        of = residuals(loss, [np.ones((5, 7), "float32")], np.ones(7, "float32"))
        return of.saved_bytes, of.saved_tensors, of.backward_calls["sin"] + of.backward_calls["cos"]

    turn_bytes = 7 * 4
    assert counts(body) == (2 * 5 * turn_bytes, 2, 0)
    kept, arrays, again = counts(jax.checkpoint(body))
    assert (kept, arrays) == (5 * turn_bytes, 1)
    assert again == 5  # cos alone: the value itself nobody asks for


# The silu network.

TENSOR = 16 * 16 * 4

SILU_6 = {
    # arrays, tensors in them, matmul and sigmoid again; the input of the first turn is with them
    "none": (4, 4 * 6, 0, 0),
    "remat": (1, 6, 6, 6),
    "remat:every=2": (1, 3, 6, 6),
    "sqrt:count": (1, 2, 6, 6),
    "remat:every=6": (0, 0, 6, 6),
    "remat:every=4": (1, 2, 6, 6),
    "remat:policy=dots_saveable": (2, 12, 0, 6),
    "remat:policy=everything_saveable": (4, 4 * 6, 0, 0),
    "remat:every=3,names=p": (2, 2 + 6, 0, 6),
    "remat:every=2,last=plain": (5, 2 + 4 * 2, 4, 4),
    "remat:only=2": (9, 4 * 2 + 1 + 4 * 3, 1, 1),
}


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("strategy", list(SILU_6))
def test_what_is_held_and_computed_again(strategy: str) -> None:
    measured = peer(SiluWorkload(6, 16), strategy).measure()
    arrays, tensors, products, sigmoids = SILU_6[strategy]
    again = measured.recomputed_by_op or {}
    assert (measured.memory.saved_tensors, measured.memory.saved_bytes) == (
        arrays,
        tensors * TENSOR,
    )
    assert (again.get("matmul", 0), again.get("sigmoid", 0)) == (products, sigmoids)


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("layers", "n", "batch", "strategy"),
    [
        (8, 32, 32, "none"),
        (8, 32, 32, "remat"),
        (8, 32, 32, "remat:every=3,policy=dots_saveable,last=plain"),
        (10, 5, 7, "remat:every=3"),  # 4, 3, 3: a region alone, and a loop of two
        (6, 5, 7, "remat:only=0,3"),
        (2, 1, 1, "none"),
    ],
)
def test_loss_and_every_gradient_agree(
    dtype: str, layers: int, n: int, batch: int, strategy: str
) -> None:
    workload = SiluWorkload(layers, n, batch, dtype)
    network = peer(workload, strategy)
    expected = own_values(workload, device())
    for _ in range(2):
        result = network.backward(network.forward())
        values = network.values(result)
        assert [g.shape for g in values.gradients] == [(n, n)] * layers
        known = agreement(expected, values, dtype, network.tolerance)
        assert known.agrees, known
    first = float(values.gradients[0].astype("float64").sum())
    assert network.check(result) == pytest.approx(first, rel=1e-12)


# The TRG.


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["none", SVD, "remat:policy=everything_saveable"])
def test_value_and_gradient_of_the_trg_agree(strategy: str) -> None:
    workload = TrgWorkload(7)
    network = peer(workload, strategy)
    known = agreement(own_values(workload, device()), found(network), "float64", network.tolerance)
    assert known.agrees, known
    assert known.tolerance == 1e-12


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "products"),
    [
        ("none", 0),
        ("remat", 8 * 2),  # the product that makes the next T is not needed
        ("remat:every=2", (2 * 3 - 1) + 3 * (2 * 3)),
        ("sqrt:count", (3 * 3 - 1) + 3 * 3 + 2 * 3),
        (SVD, 8 * 2),
        ("remat:only=5..6", 2 * 2),
    ],
)
def test_a_loop_holds_and_computes_again_what_the_same_steps_do(
    strategy: str, products: int
) -> None:
    """Eight steps, the last six of size 4 in a row. A region that has a loop inside runs all of its
    body in each turn, so that the product is computed again which makes the last T of the region.
    """

    def measured(engine: str) -> Measured:
        return peer(TrgWorkload(8, chi=4), strategy, engine).measure()

    loop, written_out = measured("jax-scan"), measured("jax-eager")
    assert loop.memory.saved_bytes == written_out.memory.saved_bytes
    assert (loop.memory.saved_tensors or 0) <= (written_out.memory.saved_tensors or 0)
    again = [measured.recomputed_by_op or {} for measured in (loop, written_out)]
    assert again[0].get("svd", 0) == again[1].get("svd", 0)
    assert again[0].get("matmul", 0) == products


@NEEDS_JAX
@pytest.mark.slow
def test_xla_plans_less_for_a_loop_with_a_checkpoint_on_its_body() -> None:
    """Of the loop alone: what XLA merges again where steps are written out."""

    def planned(strategy: str) -> int:
        temp_bytes = peer(TrgWorkload(12, chi=8), strategy).measure().memory.compiled_temp_bytes
        assert temp_bytes is not None
        return temp_bytes

    assert planned("remat") < 0.5 * planned("none")


# What has no loop.


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "strategy"),
    [
        (SiluWorkload(1, 4), "none"),
        (SiluWorkload(2, 4), "remat:only=0"),
        (TrgWorkload(4), "none"),
        (TrgWorkload(5), "remat"),
    ],
)
def test_a_program_without_a_loop_has_no_peer(workload: Workload, strategy: str) -> None:
    with pytest.raises(NoPeer, match="there is no loop: see `jax`"):
        peer(workload, strategy)


@pytest.mark.long
@NEEDS_JAX
@pytest.mark.slow
def test_the_command_has_rows_of_the_loop(capsys: pytest.CaptureFixture[str]) -> None:
    """Whether a recomputed step turns signs is up to XLA and LAPACK; word and exit code fit."""
    strategies = ("-s", "none", "-s", "remat", "-s", "balanced")
    common = ("run", "--workload", "trg", "--reps", "1", "--warmup", "0", "--json")
    code = run_command([*common, "--steps", "6", "--chi", "4", *strategies, "--engine", "jax-scan"])
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    check_schema(data)
    rows = {row["strategy"]: row for row in data["strategies"] if row["engine"] == "jax-scan"}
    assert rows["none"]["agreement"]["agrees"]
    assert rows["balanced"]["engine"] == "jax-scan"
    right = rows["remat"]["agreement"]["agrees"]
    assert code == (0 if right else 5)
    assert ("jax-scan remat: " in captured.err) == (not right)
    assert rows["remat"]["recomputed_by_op"] == {"svd": 12, "matmul": 12}
