"""Parameters that a checkpoint cuts off from the loss, while others keep their gradients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from tests.backend_kit import NEEDS_TORCH

pytestmark = [
    NEEDS_TORCH,
    pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad:UserWarning"),
]

MODULES = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(2))
        self.head, self.unused = nn.Linear(8, 2), nn.Linear(8, 2)
        self.reentrant = reentrant

    def forward(self, x):
        for block in self.blocks:
            if self.reentrant is None:
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


def plain():
    return Net(None), torch.ones(4, 8)


def reentrant():
    return Net(True), torch.ones(4, 8)


def others():
    return Net(False), torch.ones(4, 8)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "lost.py"
    written.write_text(MODULES)
    return written


@pytest.mark.parametrize(
    ("make", "strategy"), [("reentrant", "own"), ("plain", "reentrant")], ids=str
)
def test_parameters_that_lose_their_gradient_are_named_with_the_cause(
    file: Path, make: str, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both blocks' four; what has no gradient without checkpoints either is not lost."""
    module = ("--module", f"{file}:{make}", "-s", strategy, "--threads", "1")
    expected = (
        "no gradient reaches `blocks.0.0.weight`, `blocks.0.0.bias`, `blocks.1.0.weight`, "
        "`blocks.1.0.bias`, which `none` has: reentrant checkpoints"
    )
    assert run_command(["run", *module, "--reps", "1", "--json"]) == 5
    record = json.loads(capsys.readouterr().out)
    (found,) = [text for text in record["warnings"] if "no gradient reaches" in text]
    assert found.startswith(f"{strategy}: {expected}")
    assert "use_reentrant=False" in found
    assert run_command(["check", *module, "--json"]) == 5
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["finding"].startswith(expected)
    assert run_command(["check", *module, "--width", "200"]) == 5
    assert expected.split(", ")[0] in capsys.readouterr().out


def test_nothing_is_said_where_none_is_lost(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = ("--module", f"{file}:others", "-s", "own", "--threads", "1", "--json")
    assert run_command(["run", *module, "--reps", "1"]) == 0
    assert "no gradient reaches" not in capsys.readouterr().out
    assert run_command(["check", *module]) == 0
    assert json.loads(capsys.readouterr().out)["checks"][0]["finding"] is None
