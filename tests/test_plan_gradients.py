"""A plan for a module whose gradients a checkpoint changes is no plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import PlanError
from tests.backend_kit import NEEDS_TORCH

pytestmark = NEEDS_TORCH

MODULES = """
import numpy as np
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, drops):
        super().__init__()
        self.linear, self.drops = nn.Linear(16, 16), drops

    def forward(self, x):
        return self.linear(x).tanh().sin().tanh().sin() * self.mask(x)

    def mask(self, x):
        if self.drops == "torch":
            return torch.rand(x.shape) > 0.5
        return torch.from_numpy(np.random.rand(*x.shape)) > 0.5


def make(drops):
    return nn.Sequential(*(Block(drops) for _ in range(3))), torch.rand(64, 16)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "drops.py"
    written.write_text(MODULES)
    return written


@pytest.mark.parametrize(("drops", "code"), [("torch", 0), ("numpy", 5)])
def test_gradients_of_the_plan_are_held_against_those_of_none(
    file: Path, capsys: pytest.CaptureFixture[str], drops: str, code: int
) -> None:
    """PyTorch's random state is set back when a block is computed again, NumPy's is not."""
    command = ["plan", "--module", f"{file}:make", "--set", f"drops={drops}", "--threads", "1"]
    assert run_command([*command, "--budget", "45KiB", "--json"]) == code
    captured = capsys.readouterr()
    plan = json.loads(captured.out)
    assert plan["actions"]
    assert plan["gradients_equal"] is (code == 0)
    assert ("gradients are not those of `none`" in captured.err) is (code != 0)
    assert ("ckpt check" in captured.err) is (code != 0)


def test_such_checkpoints_are_not_put_on_a_model(file: Path) -> None:
    from ckptcli.torch import auto_checkpoint

    names: dict[str, object] = {}
    exec(file.read_text(), names)
    model, x = names["make"]("numpy")  # type: ignore[operator]
    with pytest.raises(PlanError, match="gradients are not those of `none`"):
        auto_checkpoint(model, x, "45KiB")
