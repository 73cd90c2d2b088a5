"""Gradients that PyTorch sums in place: a watched pass peaks as one that nobody watches.

The oracle is the tracing profiler's events of memory, which enter no mode.
"""

from __future__ import annotations

import pytest

from tests.backend_kit import NEEDS_TORCH

pytestmark = [NEEDS_TORCH, pytest.mark.slow]

NAMES = ("adapters", "adapters, a loss", "residual", "experts", "highest", "tied")


@pytest.mark.parametrize("name", NAMES)
def test_the_peak_is_that_of_a_pass_that_nobody_watches(name: str) -> None:
    import torch

    from tests.torch_summed import STEPS, events_peak, recorded

    torch.manual_seed(0)
    step = STEPS[name]()
    none, remat = recorded(step).rows
    for row in (none, remat):
        memory = row.memory
        assert memory is not None
        assert memory.peak_live is not None
        assert memory.above_allocator_bytes == 0
        assert memory.ledger_peak_bytes == memory.peak_live.total_bytes
        assert memory.ledger_peak_bytes == sum(memory.peak_live.bytes_by_why.values())
    assert none.memory is not None
    if step.loss is not None:  # the loss that ckpt takes is drawn, and another than a plain sum
        assert none.memory.peak_bytes == events_peak(step)
        assert none.memory.workspace_bytes == 0


@pytest.mark.parametrize("seed", [*range(15), 100])
def test_so_is_that_of_any_network(seed: int) -> None:
    import torch

    from ckptcli.torch import Step, ledger
    from tests.torch_summed import Drawn, events_peak, mean_square

    torch.manual_seed(seed)
    step = Step(Drawn(seed), torch.rand(32, 32), loss=mean_square)
    with ledger(step.module) as account:
        mean_square(step.module(step.args), None).backward()
    step.module.zero_grad()
    assert account.peak == events_peak(step)


def test_a_derivative_that_is_computed_another_way_is_told() -> None:
    from tests.torch_summed import STEPS, events_peak, recorded

    step = STEPS["products"]()
    record = recorded(step)
    memory = record.rows[0].memory
    assert memory is not None
    assert memory.ledger_peak_bytes == events_peak(step) + memory.above_allocator_bytes
    assert any(
        "above what PyTorch's allocator tells" in text and text.startswith("none: ")
        for text in record.warnings
    )
