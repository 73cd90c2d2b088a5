"""What a PyTorch module computes again, and what its ops work, beside PyTorch's own counter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ckptcli.torch
from tests.backend_kit import NEEDS_TORCH
from tests.torch_modules import profiled

pytestmark = NEEDS_TORCH

FILE = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Whole(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8), nn.Tanh())
        self.reentrant = reentrant

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=self.reentrant).sum()


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        x = x.detach().requires_grad_()
        y = self.body(x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.mean() + ((slope.norm(dim=1) - 1) ** 2).mean()


def stops_early():
    return Whole(False), torch.randn(16, 8, requires_grad=True)


def runs_whole():
    return Whole(True), torch.randn(16, 8, requires_grad=True)


def penalty():
    return Critic(), torch.randn(16, 8)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "work.py"
    path.write_text(FILE)
    return path


def rows(
    capsys: pytest.CaptureFixture[str], file: Path, name: str, *words: str
) -> dict[str, dict[str, Any]]:
    found = profiled(capsys, f"{file}:{name}", *words)
    return {row["strategy"]: row for row in found["strategies"]}


@pytest.mark.slow
def test_a_checkpoint_of_the_modules_own_is_what_is_computed_again(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    """The reentrant one runs all but the sum again, the other stops before its last op."""
    whole = rows(capsys, file, "runs_whole", "-s", "own")["own"]
    assert whole["recomputed_by_op"] == {"addmm": 2, "tanh": 2}
    body_flops = 2 * 16 * (8 * 32 + 32 * 8) + 16 * (32 + 8)
    assert whole["recomputed_flops"] == body_flops
    assert whole["forward_flops"] == body_flops + 16 * 8
    early = rows(capsys, file, "stops_early", "-s", "own")
    assert early["own"]["recomputed_by_op"] == {"addmm": 2, "tanh": 2}
    assert early["none"]["recomputed_by_op"] == {}
    assert early["none"]["recomputed_nodes"] == 0


def test_a_gradient_inside_the_loss_is_part_of_forward(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    """Its ops are recorded, as those of a recomputation are."""
    found = rows(capsys, file, "penalty", "-s", "none")["none"]
    assert found["recomputed_nodes"] == 0
    assert "recomputed" not in found["peak_live"]["bytes_by_why"]


def test_a_script_with_a_gradient_penalty_recomputes_nothing() -> None:
    """And its forward pass ends where `backward` is called."""
    import torch

    x = torch.randn(16, 8, requires_grad=True)
    weight = torch.randn(8, 32, requires_grad=True)
    with ckptcli.torch.ledger() as account:
        y = (x @ weight).tanh()
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        loss = slope.square().sum()
        loss.backward()
    phases = [moment.phase for moment in account.timeline()]
    assert "recompute" not in phases
    assert phases.index("backward") > len(phases) // 3
    made = {saved.op for saved in account.saved()}
    assert "pow" in made or "tanh_backward" in made


def test_operations_are_those_of_pytorchs_counter() -> None:
    """Of a product, a convolution, a batch of products, and of attention on either kernel."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

    from ckptcli.peers.torch_account import FORWARD, Account

    batch, image = torch.randn(3, 4, 5), torch.randn(2, 3, 8, 8)
    for run in (
        lambda: torch.mm(batch[0], batch[1].t()),
        lambda: torch.nn.functional.conv2d(image, torch.randn(4, 3, 3, 3)),
        lambda: torch.bmm(batch, batch.transpose(1, 2)),
    ):
        with FlopCounterMode(display=False) as counter:
            run()
        with Account() as account:
            run()
        drawn = 4 * 3 * 3 * 3 if counter.get_total_flops() > 10_000 else 0
        assert account.work.flops[FORWARD] == counter.get_total_flops() + drawn

    queries = torch.randn(2, 4, 8, 16)
    with Account() as account, torch.no_grad():
        scaled_dot_product_attention(queries, queries, queries)
    shape = queries.shape
    assert account.work.flops[FORWARD] == sdpa_flop_count(shape, shape, shape)


def test_a_recurrent_layer_multiplies_each_step_by_its_matrices() -> None:
    import torch

    from ckptcli.peers.torch_account import FORWARD, Account

    layer, sequence = torch.nn.LSTM(8, 16), torch.randn(5, 3, 8)
    with torch.no_grad(), Account() as account:
        layer(sequence)
    products = 2 * 5 * 3 * 4 * 16 * (8 + 16)
    assert products <= account.work.flops[FORWARD] < 1.1 * products


def test_views_and_what_is_only_made_work_nothing() -> None:
    import torch

    from ckptcli.peers.torch_account import FORWARD, Account

    x = torch.randn(4, 6)
    with Account() as account:
        torch.empty_like(x)
        x.view(6, 4).t().reshape(-1)[:3].detach()
        x.sum().item()
    assert account.work.by_op(FORWARD) == {"clone": 1, "sum": 1}
    assert account.work.flops[FORWARD] == 24
    assert account.work.moved_bytes[FORWARD] == 2 * 96 + 96 + 4
