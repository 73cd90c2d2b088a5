"""What a custom `autograd.Function` keeps on its `ctx`, past `save_for_backward`: no checkpoint
spares it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from tests.backend_kit import NEEDS_TORCH

pytestmark = NEEDS_TORCH

MODULES = """
import torch
from torch import nn


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.twice = [x + x, 2]
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.twice[0]


class Block(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.linear, self.function = nn.Linear(8, 8), function

    def forward(self, x):
        return self.function.apply(self.linear(x))


def of(function):
    return nn.Sequential(*(Block(function) for _ in range(3))), torch.ones(16, 8)


def saving():
    return of(Square)


def keeping():
    return of(Kept)
"""


@pytest.mark.parametrize(("make", "kept"), [("saving", 0), ("keeping", 3)])
def test_what_ctx_keeps_is_told_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: str, kept: int
) -> None:
    """A checkpoint drops what `save_for_backward` has, of all blocks, and nothing of this."""
    file = tmp_path / "context.py"
    file.write_text(MODULES)
    command = ["saved", "--module", f"{file}:{make}", "-s", "remat", "--json", "--threads", "1"]
    assert run_command(command) == 0
    (found,) = json.loads(capsys.readouterr().out)["strategies"]
    held = [tensor["ops"] for tensor in found["saved"] if tensor["op"] == "add"]
    assert held == [["ctx.twice of KeptBackward"]] * kept
