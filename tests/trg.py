"""What the tests of the TRG share: its recorded figures, and one pass of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.verify.fault import parse_fault
from ckptcli.verify.perturb import perturbed
from ckptcli.workloads.trg import TrgWorkload

# beta -> steps -> lnZ/N and its derivative.
GOLDEN = {
    0.3: {
        1: (0.989991666356947, 1.667309214024310),
        2: (0.883259462072352, 1.277612005080205),
        3: (0.817582125075755, 1.023802944795144),
        4: (0.799095207857105, 0.844054073623856),
        5: (0.792026414104853, 0.744793433247367),
        6: (0.790768685767141, 0.712432002551333),
        7: (0.790571586051378, 0.705215763876821),
        8: (0.790559420959339, 0.704527626757520),
        20: (0.790559063800966, 0.704498679529759),
    },
    0.44: {
        1: (1.241158504632921, 1.885006016293840),
        4: (0.969045408669885, 1.562847028103843),
        5: (0.948575737510947, 1.521856948731801),
        6: (0.938686186640077, 1.487578248319039),
        8: (0.931194220892822, 1.447829464723903),
        20: (0.928723962577071, 1.402785274913314),
    },
    0.5: {
        1: (1.355648554238877, 1.928055160151633),
        4: (1.069085444920724, 1.755380288777435),
        5: (1.047407181551918, 1.749163159329992),
        6: (1.036632025109121, 1.745737070078361),
        8: (1.028500070457093, 1.745559400346753),
        20: (1.025792858455947, 1.745583468150079),
    },
}


@pytest.fixture
def one_blas_thread() -> Iterator[None]:
    """Threads gain nothing at these sizes, and wait for each other where the machine is busy."""
    with threadpool_limits(1, "blas"):
        yield


def faulty(strategy: str, fault: str | None) -> Strategy:
    """A strategy, recomputing with a fault if one is named."""
    plain = parse_strategy(strategy)
    return plain if fault is None else perturbed(plain, parse_fault(fault))


def outcome(
    steps: int, strategy: str = "none", fault: str | None = None, **options: Any
) -> tuple[float, float]:
    """lnZ/N and its derivative, as one pass gives them."""
    workload = replace(TrgWorkload(steps), **options)
    dev = device().autodiff().gradient_checkpointing(faulty(strategy, fault)).watched_by(None)
    with dev.backend.quiet():
        result = workload.load(dev).forward()
        found = result.root.backward().wrt(result.parameters["beta"])
    assert found is not None
    return result.root.item(), found.item()
