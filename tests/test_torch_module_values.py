"""Values of a PyTorch module that are out of the ordinary: not finite, or sparse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command

pytestmark = pytest.mark.slow

FILE = '''
import torch
from torch import nn


def diverged():
    network = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
    return network, torch.rand(16, 8) * float("inf")


class Overflows(nn.Module):
    """The loss is finite; a derivative is not."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.other = nn.Linear(3, 3)
        self.example_input = torch.rand(2, 3)

    def forward(self, x):
        return torch.sqrt(self.inner(x) * 0.0).sum() + self.other(x).sum()


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 4, sparse=True)
        self.head = nn.Linear(4, 2)
        self.example_input = torch.tensor([0, 3, 3])

    def forward(self, x):
        return self.head(self.table(x))
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return str(path)


def command(module: str, *arguments: str) -> int:
    return run_command(["run", "--engine", "torch", "--module", module, "--reps", "1", *arguments])


def test_a_loss_that_is_not_finite_is_told_on_the_screen(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    assert command(f"{file}:diverged") == 0
    errors = capsys.readouterr().err
    for name in ("none", "remat"):
        assert f"{name}: the loss is nan" in errors
        assert f"{name}: 3 of 4 gradients are not finite, among them that of `0.weight`" in errors


def test_a_gradient_that_is_not_finite_is_told(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    assert command(f"{file}:Overflows") == 0
    captured = capsys.readouterr()
    for name in ("none", "remat"):
        words = f"{name}: 2 of 4 gradients are not finite, among them that of `inner.weight`"
        assert words in captured.err
    assert "the loss is" not in captured.err


def test_a_sparse_table_has_the_gradient_without_checkpoints(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    assert command(f"{file}:Sparse", "--json", "-q") == 0
    _, remat = json.loads(capsys.readouterr().out)["strategies"]
    known = remat["agreement"]
    assert (known["loss_ulp"], known["gradient_ulp"]) == (0.0, 0.0)


def test_the_gradient_of_a_sparse_table_is_compared(file: str) -> None:
    from ckptcli.peers.module_request import ModuleRequest
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_module import ModuleNetwork

    network = ModuleNetwork(load_module(ModuleRequest(f"{file}:Sparse"), 0), 0)
    _, found = result = network.backward(network.forward())
    assert found[0] is not None
    assert found[0].is_sparse
    table, *_ = network.values(result).gradients
    assert (table == found[0].to_dense().numpy()).all()
    assert table.any(axis=1).tolist() == [True, False, False, True, False, False]


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta")
def test_a_sparse_tensor_is_its_values_and_indices() -> None:
    import torch

    from ckptcli.peers.torch_ledger import StorageLedger

    def held_bytes(make: object, *parts: list[int] | list[list[int]]) -> int:
        assert callable(make)
        tensor = make(
            *map(torch.tensor, parts), torch.tensor([1.0, 2.0]), (3, 5), check_invariants=True
        )
        ledger = StorageLedger()
        for _ in range(2):
            ledger.count(tensor)
        found = ledger.bytes_in_use
        del tensor
        assert ledger.bytes_in_use == 0
        return found

    assert held_bytes(torch.sparse_coo_tensor, [[0, 2], [2, 0]]) == 2 * 4 + 2 * 2 * 8
    assert held_bytes(torch.sparse_csr_tensor, [0, 1, 1, 2], [2, 0]) == 2 * 4 + (4 + 2) * 8
    assert held_bytes(torch.sparse_csc_tensor, [0, 1, 1, 2, 2, 2], [2, 0]) == 2 * 4 + (6 + 2) * 8
