"""The same network in PyTorch and JAX: gradients, what is held and computed again, names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.policies import compute_bound_saveable
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.checkpoint.strategies.base import LayerRegion, Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UnknownNameError
from ckptcli.graph import Node
from ckptcli.peers.agreement import TOLERANCES, agreement, distance
from ckptcli.peers.base import (
    NoPeer,
    PeerNetwork,
    Values,
    elsewhere,
    engines,
    open_engines,
    regions_of,
)
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.profiling.peer_passes import own_values
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import INSTALLED_ENGINES, NEEDS_JAX, NEEDS_TORCH

ONE_REGION = "remat:every=6"


def network(engine: str, workload: SiluWorkload, strategy: str) -> PeerNetwork:
    (opened,) = open_engines([engine])
    regions = regions_of(parse_strategy(strategy), workload.layers)
    return opened.network(workload, regions)


def counted(engine: str, strategy: str, layers: int = 6) -> tuple[int, int, int]:
    """Tensors saved, matrix products and sigmoids computed again."""
    found = network(engine, SiluWorkload(layers, 16), strategy).measure()
    again = found.recomputed_by_op or {}
    tensors, rest_bytes = divmod(found.memory.saved_bytes, 16 * 16 * 4)
    assert rest_bytes == 0
    if engine != "jax-scan":  # where a loop holds those of all its turns in one array
        assert found.memory.saved_tensors == tensors
    return tensors, again.get("matmul", 0), again.get("sigmoid", 0)


# Gradients.


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("engine", INSTALLED_ENGINES)
@pytest.mark.parametrize(
    ("layers", "n", "batch", "strategy"),
    [
        (8, 64, 64, "none"),
        (8, 64, 64, "remat"),
        (8, 64, 64, "remat:every=3,policy=dots_saveable,last=plain"),
        (8, 64, 64, "sqrt"),
        (3, 5, 7, "segments:2"),
        (3, 5, 7, "remat:policy=everything_saveable"),
        (2, 1, 1, "none"),
    ],
)
def test_loss_and_gradients_agree(
    engine: str, dtype: str, layers: int, n: int, batch: int, strategy: str
) -> None:
    workload = SiluWorkload(layers, n, batch, dtype)
    peer = network(engine, workload, strategy)
    for _ in range(2):  # a second pass finds nothing of the first
        found = peer.values(peer.backward(peer.forward()))
        known = agreement(own_values(workload, device()), found, dtype, peer.tolerance)
        assert known.agrees, known
        assert known.tolerance == {"float32": 1e-5, "float64": 1e-12}[dtype]
        assert {gradient.dtype for gradient in found.gradients} == {np.dtype(dtype)}


@pytest.mark.slow
@pytest.mark.parametrize("engine", INSTALLED_ENGINES[:3])  # of one layer there is no loop
def test_the_smallest_network_agrees(engine: str) -> None:
    workload = SiluWorkload(1, 1, 1)
    peer = network(engine, workload, "none")
    found = peer.values(peer.backward(peer.forward()))
    assert agreement(own_values(workload, device()), found, "float32", 1e-5).agrees


@pytest.mark.slow
@pytest.mark.parametrize("engine", INSTALLED_ENGINES)
def test_a_gradient_of_another_network_does_not_agree(engine: str) -> None:
    workload, other = SiluWorkload(3, 16), SiluWorkload(3, 16)
    weights, x = workload.arrays
    other.arrays = ([weights[0], weights[1] * 1.001, weights[2]], x)
    peer = network(engine, other, "none")
    found = peer.values(peer.backward(peer.forward()))
    assert not agreement(own_values(workload, device()), found, "float32", 1e-5).agrees


def test_the_distance_is_in_shares_and_spacings_of_the_largest_element() -> None:
    expected = np.array([1.0, -1024.0, 1e-6], dtype="float32")
    found = expected + np.array([0.0, 0.0, 2.0**-13], dtype="float32")
    relative, ulp = distance(expected, found)
    assert math.isclose(relative, 2.0**-13 / 1024.0, rel_tol=1e-3)
    assert math.isclose(ulp, 1.0, rel_tol=1e-3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_agrees_with_itself_alone(value: float) -> None:
    finite, other = np.array([1.0, 2.0]), np.array([1.0, value])
    assert distance(other, other.copy()) == (0.0, 0.0)
    assert distance(finite, other) == (math.inf, math.inf)
    assert distance(other, finite) == (math.inf, math.inf)
    good, bad, lost = Values(1.0, [finite]), Values(1.0, [other]), Values(value, [finite])
    assert not agreement(good, bad, "float64", TOLERANCES["float64"]).agrees
    assert not agreement(lost, good, "float64", TOLERANCES["float64"]).agrees


def test_gradients_of_another_shape_do_not_agree() -> None:
    assert distance(np.ones(2), np.ones(3)) == (math.inf, math.inf)
    assert distance(np.zeros(2), np.ones(2))[0] == math.inf


# What is held and computed again.


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jax", "jax-eager"])
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (f"{ONE_REGION},policy=save_only_these_names(p)", (6, 0, 6)),
        (f"{ONE_REGION},policy=save_only_these_names(h)", (5, 6, 6)),
        (f"{ONE_REGION},policy=save_only_these_names(s)", (6, 6, 6)),
        (f"{ONE_REGION},policy=dots_saveable", (6, 0, 6)),
        (f"{ONE_REGION},policy=dots_with_no_batch_dims_saveable", (6, 0, 6)),
        (ONE_REGION, (0, 6, 6)),
        ("segments:1", (0, 6, 6)),
        ("remat", (5, 6, 6)),
        ("sqrt", (1, 6, 6)),
        ("none", (4 * 6 - 1, 0, 0)),
        (f"{ONE_REGION},policy=everything_saveable", (4 * 6 - 1, 0, 0)),
        (f"{ONE_REGION},policy=save_any_names_but_these(s)", (6 + 5, 0, 6)),
        (
            f"{ONE_REGION},policy=save_from_both_policies(dots_saveable,save_only_these_names(h))",
            (6 + 5, 0, 6),
        ),
    ],
)
def test_jaxs_table_of_six_layers(
    engine: str, strategy: str, expected: tuple[int, int, int]
) -> None:
    """Names and dots: the table in JAX's own terms. `none` holds a factor of each derivative."""
    assert counted(engine, strategy) == expected


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("none", (3 * 6 - 1, 0, 0)),  # p, s and h of each layer, the last h aside
        ("remat", (5, 6, 6)),
        ("remat:every=2", (2, 6, 6)),
        (ONE_REGION, (0, 6, 6)),
        (f"{ONE_REGION},policy=dots_saveable", (6, 0, 6)),
        ("remat:policy=dots_saveable", (5 + 6, 0, 6)),
        (f"{ONE_REGION},policy=everything_saveable", (3 * 6, 0, 0)),
        ("remat:every=3,last=plain", (1 + 3 * 3 - 1, 3, 3)),
        (
            f"{ONE_REGION},policy=save_from_both_policies(dots_saveable,nothing_saveable)",
            (6, 0, 6),
        ),
        (
            f"{ONE_REGION},policy=save_from_both_policies(everything_saveable,dots_saveable)",
            (3 * 6, 0, 0),
        ),
    ],
)
def test_what_pytorch_holds(strategy: str, expected: tuple[int, int, int]) -> None:
    assert counted("torch", strategy) == expected


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2, 8])
def test_pytorch_holds_what_its_hooks_say(layers: int) -> None:
    """An account of live storages, against what autograd says it packs."""
    import torch

    workload = SiluWorkload(layers, 16)
    peer: Any = network("torch", workload, "none")
    packed: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        packed[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = peer.forward()
    for tensor in (*peer.weights, peer.x):
        packed.pop(tensor.untyped_storage().data_ptr(), None)
    del loss
    memory = peer.measure().memory
    assert (memory.saved_tensors, memory.saved_bytes) == (len(packed), sum(packed.values()))
    assert memory.saved_tensors == 3 * layers - 1


@NEEDS_TORCH
@pytest.mark.slow
def test_pytorchs_peak_is_that_of_its_steps() -> None:
    """8 layers: 9 leaves, 23 saved, and both gradients of the last p * s."""
    peak = network("torch", SiluWorkload(8, 64), "none").measure().memory.peak_bytes
    assert peak is not None
    assert round(peak / (64 * 64 * 4), 2) == 9 + 23 + 2


# Names.


def test_only_names_that_exist() -> None:
    assert list(engines()) == ["jax", "jax-eager", "jax-scan", "torch"]
    with pytest.raises(UnknownNameError, match="unknown engine `touch`"):
        open_engines(["touch"])


def test_what_decides_op_by_op_has_no_peer() -> None:
    """One of the user's own, whether it is derived from nothing or from `balanced`."""

    class Everything(Strategy):
        def recomputes(self, node: Node) -> bool:
            return True

    class Otherwise(BalancedCheckpointing):
        def recomputes(self, node: Node) -> bool:
            return True

    for own in (Everything(), Otherwise()):
        with pytest.raises(NoPeer, match="op by op"):
            regions_of(own, 6)


def test_balanced_is_a_policy_over_one_region_and_says_so() -> None:
    there = elsewhere(parse_strategy("balanced"), 6)
    assert [*there.regions] == [LayerRegion(6, compute_bound_saveable)]
    assert "one region around everything" in there.reading
    for same in ("none", "remat", "sqrt"):
        assert elsewhere(parse_strategy(same), 6).reading == ""


@pytest.mark.slow
@pytest.mark.parametrize("engine", INSTALLED_ENGINES)
def test_balanced_holds_the_products_that_it_holds_here(engine: str) -> None:
    """8 layers: 8 products, and each sigmoid again; as many bytes as ckpt's own."""
    own = memory_pass(SiluWorkload(8, 16), device(), parse_strategy("balanced"))
    held = (own.memory.saved_tensors, 0, own.outcome.recomputed_by_op["sigmoid"])  # type: ignore[index]
    assert held == (8, 0, 8)
    assert counted(engine, "balanced", 8) == held
    assert counted(engine, "remat:every=8,policy=dots_saveable", 8) == held


def test_the_policy_holds_here_what_balanced_does() -> None:
    policy = parse_strategy("remat:every=8,policy=compute_bound_saveable")
    workload = SiluWorkload(8, 16)
    one, other = (
        memory_pass(workload, device(), strategy)
        for strategy in (parse_strategy("balanced"), policy)
    )
    assert one.memory.saved_bytes == other.memory.saved_bytes
    assert one.outcome.recomputed_by_op == other.outcome.recomputed_by_op


@pytest.mark.parametrize(
    "policy",
    [
        "offload_dot_with_no_batch_dims",
        "save_and_offload_only_these_names(s|p)",
        "save_from_both_policies(dots_saveable,offload_dot_with_no_batch_dims)",
    ],
)
def test_what_is_moved_to_the_host_has_no_peer_on_a_cpu(policy: str) -> None:
    with pytest.raises(NoPeer, match="on a CPU the library moves nothing to the host"):
        regions_of(parse_strategy(f"remat:policy={policy}"), 6)


@NEEDS_TORCH
@pytest.mark.slow
def test_pytorch_knows_no_names() -> None:
    with pytest.raises(NoPeer, match="knows no names"):
        network("torch", SiluWorkload(2, 4), "remat:names=p")


@pytest.mark.slow
@pytest.mark.parametrize("engine", INSTALLED_ENGINES[:2])
def test_a_policy_of_ones_own_has_no_peer(engine: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def products(value):\n    return value.op == 'matmul'\n")
    with pytest.raises(NoPeer, match="a function of ckpt's values"):
        network(engine, SiluWorkload(2, 4), f"remat:policy={tmp_path}/mine.py:products")
