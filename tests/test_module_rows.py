"""Rows that PyTorch itself offers beside checkpoints: selective by op, on the host, compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcli.errors import UsageError
from ckptcli.peers.module_strategies import module_strategies
from tests.backend_kit import NEEDS_TORCH
from tests.test_torch_blocks import Judged, judged

__all__ = ["judged"]

FILE = """
import torch
from torch import nn


def make():
    torch.manual_seed(3)
    blocks = [nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(4)]
    return nn.Sequential(*blocks), torch.rand(128, 32)


def drops():
    module, x = make()
    return nn.Sequential(module, nn.Dropout(0.5)), x
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(FILE)
    return f"{tmp_path / 'net.py'}:make"


def test_ops_and_what_groups_blocks_are_read() -> None:
    _, strategy = module_strategies(["selective:mm+*attention*,every=2"])
    assert list(strategy.saved_ops) == ["mm", "*attention*"]
    assert strategy.grouping is not None
    assert strategy.grouping.name == "remat:every=2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("selective", "names no ops of PyTorch"),
        ("selective:mm+", "names no ops of PyTorch"),
        ("selective:aten.mm", "names no ops of PyTorch"),
        ("offload:2", "takes no arguments, got `2`"),
    ],
)
def test_what_stands_for_no_row_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        module_strategies([text])


@pytest.mark.slow
@NEEDS_TORCH
def test_ops_that_are_saved_are_held_and_no_others(judged: Judged, module: str) -> None:
    """A region holds its input, which is what the one before gives, and each product's output."""
    ops, groups = "selective:addmm", "selective:addmm,every=2"
    code, rows, _ = judged(module, "-s", "remat", "-s", ops, "-s", groups, "-s", "selective:admm")
    assert code == 0
    wide, narrow = 128 * 64 * 4, 128 * 32 * 4
    assert rows["remat"]["saved_bytes"] == 3 * narrow
    assert rows[ops]["saved_bytes"] == 4 * wide + 4 * narrow  # the last product's output too
    assert rows[groups]["saved_bytes"] == rows[ops]["saved_bytes"]
    assert rows[groups]["regions"] == [["0", "1"], ["2", "3"]]
    for name in ("remat", ops, groups):
        assert rows[name]["agreement"]["gradient_ulp"] == 0.0
    assert rows["selective:admm"]["reason"] == (
        "PyTorch has no op aten.admm; did you mean `addmm`?"
    )


@pytest.mark.slow
@NEEDS_TORCH
def test_what_would_be_on_the_host_is_told(judged: Judged, module: str) -> None:
    """Of a layer its input and weight, of a GELU its input; a CPU has it there already."""
    code, rows, _ = judged(module, "-s", "offload")
    activations = 128 * 4 * (4 * 32 + 2 * 4 * 64)
    weights = (4 * 2 - 1) * 32 * 64 * 4  # the input needs no gradient, nor so the first weight
    assert code == 0
    assert f"would hold {(activations + weights) / 1024:.1f} KiB there" in rows["offload"]["reason"]
    assert rows["offload"]["reason"].startswith("on a CPU nothing is moved to the host")
