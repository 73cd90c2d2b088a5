"""`ckpt run --fake`: the account of a module by shapes, beside that of the same module for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.profiling.fake_ops import Comparison
from tests.backend_kit import NEEDS_TORCH
from tests.test_module_saved import listed
from tests.test_torch_blocks import CASES, NEEDS_TRANSFORMERS
from tests.torch_modules import profiled

FILE = """
import torch
from torch import nn

from ckptcli.torch import Step


class Recurrent(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0].mean()


def recurrent():
    return Recurrent(32, 32, batch_first=True), torch.rand(4, 16, 32)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True) for _ in range(3)
        )

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.mean()


def wide():
    return nn.Sequential(nn.Linear(8, 256)), torch.rand(1024, 8)


def attention():
    return Attention().to(torch.bfloat16), torch.rand(2, 16, 32).to(torch.bfloat16)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))).mean()


def trained():
    layers = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)]
    return Step(
        nn.Sequential(*layers),
        torch.rand(512, 64),
        loss=lambda output, x: output.square().mean(),
        optimizer=torch.optim.AdamW,
        accumulate=2,
    )


def tied():
    return Tied().double(), torch.rand(8, 64).double()


def huge():
    layers = [nn.Sequential(nn.Linear(100_000, 100_000), nn.Tanh()) for _ in range(4)]
    return nn.Sequential(*layers), torch.rand(8192, 100_000)


class Deciding(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:  # the line that decides
            x = x + 1
        return self.inner(x)


def deciding():
    return Deciding(), torch.rand(2, 4)
"""

LLAMA_8B = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make():
    config = LlamaConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, vocab_size=128256, max_position_embeddings=8192, use_cache=False,
    )
    ids = torch.randint(0, 128256, (4, 4096))
    return LlamaForCausalLM(config).to(torch.bfloat16).train(), {"input_ids": ids, "labels": ids}
"""

WITHOUT_MASK = """
from transformers.models.llama import modeling_llama
modeling_llama.create_causal_mask = lambda *given, **named: None
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return str(path)


def test_what_was_found_of_ops_is_told() -> None:
    same = Comparison(76, {}, {"slice_backward": None})
    assert list(same.notes()) == [
        "76 kinds of ops, run for real on a small scale, return the bytes of their shapes",
        "not held against a real run: `slice_backward`",
    ]
    ops = {f"op{i}": (2048 + i, 1024) for i in range(6)}
    (told,) = Comparison(0, ops).notes()
    assert "ops is another than a real run's: `op5` (2.0 KiB for real, 1.0 KiB by shapes)" in told
    assert told.endswith("and 2 more")


def shapes(capsys: pytest.CaptureFixture[str], module: str, *more: str) -> dict[str, Any]:
    command = ["run", "--fake", "--json", "-q", "--threads", "1", "--module", module, *more]
    assert run_command(command) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    "name",
    [
        "{file}:attention",
        "{file}:tied",
        "{file}:trained",
        "{file}:wide",
        f"{CASES}/structures.py:stages",
    ],
)
def test_the_account_is_that_of_a_real_run(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    module = name.format(file=file)
    strategies = (
        ("-s", "none") if name.endswith(("tied", "wide")) else ("-s", "remat", "-s", "segments:2")
    )
    data = shapes(capsys, module, *strategies)
    real = profiled(capsys, module, "-q", "--threads", "1", *strategies)["strategies"]
    keys = ("saved_bytes", "saved_tensors", "ledger_peak_bytes", "params_input_bytes", "reason")
    keys += ("optimizer_bytes", "ledger_peak_step_bytes")
    for row, other in zip(data["strategies"], real, strict=True):
        assert {key: row[key] for key in keys} == {key: other[key] for key in keys}
        if row["peak_live"] is not None:
            assert row["peak_live"]["bytes_by_why"] == other["peak_live"]["bytes_by_why"]
        assert (row["workspace_bytes"], row["loss"]) == (None, None)
        assert row["total_s"]["samples"] == []
    assert "run for real, every op of the module returns the bytes" in str(data["warnings"])


@pytest.mark.slow
@NEEDS_TORCH
def test_ops_whose_account_differs_are_named(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """The reserve of an LSTM has no size before its kernel runs."""
    command = ["run", "--fake", "-s", "none", "--module", f"{file}:recurrent"]
    assert run_command(command) == 0
    captured = capsys.readouterr()
    told = " ".join(captured.err.split())
    assert "of these ops is another than a real run's: `mkldnn_rnn_layer` (" in told
    assert "PyTorch's CPU kernels" in told
    assert "shapes only" in captured.out


@pytest.mark.slow
@NEEDS_TORCH
def test_a_module_that_is_larger_than_the_machine(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    data = shapes(capsys, f"{file}:huge")
    none, remat = data["strategies"]
    layer, activation = 4 * (100_000**2 + 100_000), 4 * 8192 * 100_000
    assert none["params_input_bytes"] == 4 * layer + activation
    assert none["saved_bytes"] == 4 * activation
    assert remat["saved_bytes"] == 3 * activation
    assert any("kinds of ops, run for real on a small scale" in text for text in data["warnings"])
    assert data["workload"]["title"].endswith("shapes only")


@pytest.mark.slow
@NEEDS_TORCH
def test_what_is_held_is_listed_by_shapes_too(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    module = f"{file}:attention"
    for_real = listed(capsys, module, ["none", "remat"])
    by_shapes = listed(capsys, module, ["none", "remat"], "--fake")
    assert by_shapes["strategies"] == for_real["strategies"]
    assert run_command(["saved", "--fake", "--module", module, "--by", "op"]) == 0
    assert "shapes only" in capsys.readouterr().out


@pytest.mark.slow
@NEEDS_TORCH
def test_a_module_that_decides_by_values_is_told_so(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    assert run_command(["run", "--fake", "--module", f"{file}:deciding"]) == 1
    captured = capsys.readouterr()
    line = 1 + FILE[: FILE.index("# the line that decides")].count("\n")
    assert captured.out == ""
    assert "decides by values, which shapes do not have" in captured.err
    assert f"net.py:{line} (`if x.sum() > 0:" in captured.err


@pytest.mark.long
@pytest.mark.slow
@NEEDS_TORCH
@NEEDS_TRANSFORMERS
@pytest.mark.parametrize(
    ("mask", "gibibytes"), [("", ["147.0", "43.0"]), (WITHOUT_MASK, ["137.0", "42.9"])]
)
def test_a_llama_of_eight_billion_parameters(
    tmp_path: Path, mask: str, gibibytes: list[str]
) -> None:
    """In 1 GiB; without the mask that transformers keeps where there are no elements, 10 less."""
    path = tmp_path / "llama.py"
    path.write_text(LLAMA_8B + mask)
    command = [sys.executable, "-m", "ckptcli", "run", "--fake", "--json", "-q"]
    record = tmp_path / "record.json"
    with record.open("w") as out:
        child = subprocess.Popen([*command, "-s", "remat", "--module", f"{path}:make"], stdout=out)
        _, status, used = os.wait4(child.pid, 0)  # of this child alone
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    assert used.ru_maxrss * 1024 < 2**30
    rows = json.loads(record.read_text())["strategies"]
    assert [f"{row['ledger_peak_bytes'] / 2**30:.1f}" for row in rows] == gibibytes
