"""What a PyTorch module is given, each pass gets anew, as each step of a training its batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from tests.backend_kit import NEEDS_TORCH
from tests.torch_modules import profiled

pytestmark = NEEDS_TORCH

MODULES = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Penalty(Net):
    def forward(self, x):
        y = super().forward(x.requires_grad_()).sum()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        return y + slope.pow(2).sum()


class Pops(Net):
    def forward(self, batch):
        return super().forward(batch.pop("x"))


class Notes(Net):
    def forward(self, batch):
        batch["output"] = super().forward(batch["x"])
        return batch["output"]


class Doubles(Net):
    def forward(self, x):
        x *= 2
        return super().forward(x)


X = torch.linspace(0, 1, 32).reshape(4, 8)


def penalty():
    return Penalty(), X.clone()


def penalty_of_one_input():
    return Penalty(), X


def penalty_of_micro_batches():
    return {"module": Penalty(), "args": X.clone(), "accumulate": 2}


def slope_of_the_batch():
    def loss(output, x):
        (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
        return slope.pow(2).mean()

    class Asks(Net):
        def forward(self, x):
            return super().forward(x.requires_grad_())

    return {"module": Asks(), "args": X.clone(), "loss": loss}


def pops():
    return Pops(), ({"x": X},)


def notes():
    batch = {"x": X}
    loss = lambda output, given: given["output"].sum()
    return {"module": Notes(), "args": (batch,), "batch": batch, "loss": loss}


def doubles():
    return Doubles(), X.clone()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "given.py"
    written.write_text(MODULES)
    return written


@pytest.mark.parametrize(
    "make",
    [
        "penalty",
        "penalty_of_one_input",
        "penalty_of_micro_batches",
        "slope_of_the_batch",
        "pops",
        "notes",
    ],
)
def test_a_pass_leaves_nothing_on_its_input(
    file: Path, make: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a gradient, to which the next pass would add its own, nor an entry that is gone."""
    module = f"{file}:{make}"
    record = profiled(capsys, module, "--threads", "1", "-q")
    assert record["strategies"][1]["judgement"]["word"] != "wrong"
    assert run_command(["check", "--module", module, "-q"]) == 0


def test_an_input_that_is_overwritten_is_named(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", "--module", f"{file}:doubles"]) == 1
    error = capsys.readouterr().err
    assert "`doubles` does something else each time" in error.replace(f"{file}:", "")
    assert "overwrites `input 0`" in error
    assert "clone" in error
