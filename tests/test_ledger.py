"""The ledger's account: views, releases, the level after a pass, and the peaks of the silu network.

The silu figures are in tensors of n x n: forward keeps 3 a layer under `none` but for the last
layer's product, and 1 a layer under `balanced`.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ckptcli import Device, device
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.numpy_blocks import BLOCK_ELEMENTS
from ckptcli.backends.workspace import (
    GRANULE_BYTES,
    PYTHON_OBJECTS_BYTES,
    Workspaces,
    workspace_bound,
)
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import STRATEGIES, backward

pytestmark = pytest.mark.usefixtures("no_collector")

N, LAYERS = 64, 8
TENSOR_BYTES = N * N * 4


def accounted(strategy: str) -> tuple[Device, Ledger]:
    ledger = Ledger()
    dev = device().autodiff().gradient_checkpointing(parse_strategy(strategy))
    return dev.watched_by(None, TrackedBackend(NumpyBackend(), ledger)), ledger


def test_a_view_counts_with_its_base() -> None:
    dev, ledger = accounted("none")
    x = dev.tensor(np.zeros((4, 8)))
    assert ledger.bytes_in_use == 256
    view = x.transpose().reshape([8, 4])[1:3]
    assert ledger.bytes_in_use == 256
    del x
    assert ledger.bytes_in_use == 256
    assert [storage.shape for storage in ledger.live_by_id().values()] == [(4, 8)]
    del view
    assert (ledger.bytes_in_use, ledger.live_by_id()) == (0, {})


def test_a_storage_is_released_with_its_last_reference() -> None:
    dev, ledger = accounted("none")

    def live_bytes() -> int:
        """The account, which must be that of the storages said to be live."""
        live = ledger.live_at(ledger.tick)
        assert live == list(ledger.live_by_id().values())
        assert sum(storage.storage_bytes for storage in live) == ledger.bytes_in_use
        return ledger.bytes_in_use

    x = dev.tensor(np.zeros(10, np.float32))
    y = x + 1.0
    z = y * y
    assert live_bytes() == 120
    del x, y
    assert live_bytes() == 40
    assert list(ledger.live_by_id()) == [dev.namespace.storage_id(z.value)]
    del z
    assert live_bytes() == 0


def test_a_seed_of_ones_takes_the_bytes_of_one_element() -> None:
    dev, ledger = accounted("none")
    x = dev.tensor(np.zeros((100, 100))).require_grad()
    gradients = backward(x.transpose())
    assert ledger.bytes_in_use == 80_000 + 8
    del gradients


@pytest.mark.parametrize(
    ("strategy", "held", "peak"), [("none", 23, 24), ("balanced", 8, 11)], ids=STRATEGIES
)
def test_the_silu_network(strategy: str, held: int, peak: int) -> None:
    dev, ledger = accounted(strategy)
    network = SiluWorkload(LAYERS, N).load(dev)
    base = ledger.bytes_in_use
    assert base == (LAYERS + 1) * TENSOR_BYTES
    root = network.forward().root
    assert ledger.bytes_in_use - base - root.value.nbytes == held * TENSOR_BYTES
    ledger.start_phase()
    gradients = backward(root)
    assert 0 <= ledger.peak.live_bytes - base - peak * TENSOR_BYTES < 1024
    at_peak = ledger.live_at(ledger.peak.tick)
    assert sum(storage.storage_bytes for storage in at_peak) == ledger.peak.live_bytes
    assert ledger.bytes_in_use - base - root.value.nbytes == len(gradients) * TENSOR_BYTES
    del root, gradients
    assert ledger.bytes_in_use == base


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_pass_that_never_goes_backward_is_released_too(strategy: str) -> None:
    dev, ledger = accounted(strategy)
    network = SiluWorkload(LAYERS, N).load(dev)
    base = ledger.bytes_in_use
    network.forward()
    assert ledger.bytes_in_use == base
    assert ledger.peak.live_bytes > base + LAYERS * TENSOR_BYTES


def test_the_peak_is_the_largest_sum_of_live_storages() -> None:
    dev, ledger = accounted("balanced")
    backward(SiluWorkload(2, 8).load(dev).forward().root)
    ticks = range(max(storage.born for storage in ledger.history) + 1)
    sums = [sum(storage.storage_bytes for storage in ledger.live_at(tick)) for tick in ticks]
    assert ledger.peak.live_bytes == max(sums) == sums[ledger.peak.tick]


def with_workspace() -> tuple[Device, Ledger]:
    ledger = Ledger(Workspaces())
    dev = device().autodiff().watched_by(None, TrackedBackend(NumpyBackend(), ledger))
    ledger.start_phase()
    return dev, ledger


def test_the_workspace_is_unknown_where_nobody_measures_it() -> None:
    assert Ledger().peak.with_workspace_bytes is None


@pytest.mark.parametrize("n", [3_000, 4_099, 65_536])
def test_the_workspace_is_a_bound_in_whole_granules_of_what_a_kernel_allocates(n: int) -> None:
    """gelu holds at least one array of a block beside its result, and fewer than twenty."""
    dev, ledger = with_workspace()
    x = dev.tensor(np.zeros(n))
    y = x.gelu()
    assert ledger.bytes_in_use == ledger.peak.live_bytes == 2 * n * 8
    block_bytes = min(n, BLOCK_ELEMENTS) * 8
    assert ledger.peak.with_workspace_bytes is not None
    workspace_bytes = ledger.peak.with_workspace_bytes - ledger.peak.live_bytes
    assert block_bytes <= workspace_bytes < 20 * block_bytes
    assert workspace_bytes % GRANULE_BYTES == 0
    del x, y


def test_python_objects_alone_are_no_workspace() -> None:
    dev, ledger = with_workspace()
    x = dev.tensor(np.zeros(4))
    y = x.gelu()
    assert ledger.peak.with_workspace_bytes == ledger.peak.live_bytes == 2 * 4 * 8
    del x, y


@given(rise_bytes=st.integers(0, 2**40))
def test_the_bound_is_never_less_than_a_rise_that_arrays_can_make(rise_bytes: int) -> None:
    bound_bytes = workspace_bound(rise_bytes)
    assert bound_bytes % GRANULE_BYTES == 0
    assert bound_bytes < rise_bytes + GRANULE_BYTES
    assert bound_bytes >= rise_bytes or rise_bytes <= PYTHON_OBJECTS_BYTES


def grown(x: Any, *others: Any) -> Any:
    """Twice as much memory beside its result as the call before, whose result it is of."""
    grown.calls += 1  # type: ignore[attr-defined]
    np.zeros(10_000 * 2**grown.calls)  # type: ignore[attr-defined]
    return x + 1.0


@pytest.mark.parametrize(
    ("others", "calls"),
    [
        ((np.zeros(4),), 1),
        ((np.zeros(4), None, 0.5), 1),
        ((np.zeros((4, 1)),), 2),
        ((np.zeros(8)[::2],), 2),
        ((np.zeros(4, np.float32),), 2),
        ((np.zeros(4), 1, 0.5), 2),
        ((np.zeros(4), "add"), 2),
        ((np.zeros(4), slice(1, 2)), 2),
        ((np.zeros(4), object()), 3),
    ],
    ids=[
        "shape",
        "floats",
        "another shape",
        "strides",
        "dtype",
        "static",
        "text",
        "slice",
        "object",
    ],
)
def test_a_call_is_watched_once_for_all_of_its_kind(others: tuple[Any, ...], calls: int) -> None:
    """Values do not make a kind; shapes, strides, dtypes and static arguments do."""
    workspaces, x = Workspaces(), np.zeros(4)
    grown.calls = 0  # type: ignore[attr-defined]
    base = (np.ones(4), *((None, 2.5) if calls == 1 and len(others) > 1 else ()))
    figures = {workspaces.call(grown, (x, *base), {})[1]}
    for _ in range(2):
        figures.add(workspaces.call(grown, (x, *others), {})[1])
    assert len(figures) == calls
    assert not tracemalloc.is_tracing()


def test_who_watches_memory_already_is_not_stopped() -> None:
    tracemalloc.start()
    try:
        before_bytes = tracemalloc.get_traced_memory()[0]
        kept = np.zeros(100_000)
        _, workspace_bytes = Workspaces().call(lambda: np.zeros(50_000).sum(), (), {})
        assert 400_000 <= workspace_bytes <= 400_000 + 2 * GRANULE_BYTES
        assert tracemalloc.get_traced_memory()[0] - before_bytes >= kept.nbytes
    finally:
        tracemalloc.stop()
