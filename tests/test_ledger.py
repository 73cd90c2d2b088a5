"""The ledger's account: views, releases, the level after a pass, and the peaks of the silu network.

The silu figures are in tensors of n x n: forward keeps 3 a layer under `none` but for the last
layer's product, and 1 a layer under `balanced`.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from ckptcli import Device, device
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
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


def test_kernel_temporaries_are_counted_where_tracemalloc_runs() -> None:
    assert Ledger().peak.with_transients_bytes is None
    tracemalloc.start()
    try:
        dev, ledger = accounted("none")
        x = dev.tensor(np.zeros(1000))
        ledger.start_phase()
        y = x.gelu()
    finally:
        tracemalloc.stop()
    assert ledger.bytes_in_use == ledger.peak.live_bytes == 16_000
    transients = ledger.peak.with_transients_bytes
    assert transients is not None
    assert 8_000 <= transients - ledger.peak.live_bytes < 200_000
    del y
