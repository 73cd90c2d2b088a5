"""A model without a file: by its importable name, with an input that is drawn."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import UsageError
from ckptcli.peers.module_input import DrawnInput, parsed_input
from tests.backend_kit import NEEDS_TORCH
from tests.torch_modules import profiled

PACKAGE = """
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.words, self.places = nn.Embedding(50, width), nn.Embedding(12, width)
        self.register_buffer("scale", torch.ones(width))
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width)) for _ in range(2))

    def forward(self, ids, x=None):
        assert ids.max() < 12
        h = self.words(ids) * self.scale + self.places(ids)
        for block in self.blocks:
            h = block(h).tanh()
        return h if x is None else h + x


def net():
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))


def given():
    return net(), torch.rand(2, 8)


def needs(width):
    return net()
"""
ARGUMENTS = ("--threads", "1", "-q")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4x3x224x224", DrawnInput((4, 3, 224, 224))),
        ("7", DrawnInput((7,))),
        ("int64:4x512", DrawnInput((4, 512), "int64")),
        ("bfloat16:1", DrawnInput((1,), "bfloat16")),
    ],
)
def test_an_input_is_read(text: str, expected: DrawnInput) -> None:
    assert parsed_input(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "`` is no shape"),
        ("4x", "`4x` is no shape"),
        ("4,3", "`4,3` is no shape"),
        ("-1x3", "`-1x3` is no shape"),
        ("int64:", "`` is no shape"),
        ("int65:4", "unknown dtype `int65`"),
        (":4", "unknown dtype ``"),
    ],
)
def test_what_is_no_input_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parsed_input(text)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "ckpt_test_nets.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ckpt_test_nets", raising=False)
    return "ckpt_test_nets"


@pytest.mark.slow
@NEEDS_TORCH
def test_a_class_on_the_path_is_profiled(capsys: pytest.CaptureFixture[str], package: str) -> None:
    """Whole numbers are below the rows of the smallest table; bfloat16 is half of everything."""
    words = ("--input", "int64:4x6", "--input", "float64:4x6x16")
    whole = profiled(capsys, f"{package}:Decoder", *words[:2], *ARGUMENTS)
    half = profiled(capsys, f"{package}:Decoder", *words[:2], "--dtype", "bfloat16", *ARGUMENTS)
    assert whole["children"] == ["blocks.0", "blocks.1"]
    assert (whole["config"]["input_texts"], whole["config"]["dtype"]) == (["int64:4x6"], None)
    assert half["workload"]["dtype"] == "bfloat16"
    ids_bytes = 8 * 24
    for row, other in zip(whole["strategies"], half["strategies"]):
        floats = row["params_input_bytes"] - ids_bytes
        assert other["params_input_bytes"] - ids_bytes == floats // 2
        assert other["agreement"]["agrees"]
    mixed = profiled(capsys, f"{package}:Decoder", *words, *ARGUMENTS)["strategies"][0]
    params_input_bytes = whole["strategies"][0]["params_input_bytes"]
    assert mixed["params_input_bytes"] == params_input_bytes + 8 * 4 * 6 * 16


@pytest.mark.slow
@NEEDS_TORCH
def test_an_input_goes_before_that_of_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, package: str
) -> None:
    """In `check` and `saved` too; the same seed draws the same."""
    module = f"{tmp_path / package}.py"
    assert run_command(["check", "--module", f"{module}:net", "--input", "3x8"]) == 0
    capsys.readouterr()
    words = ["saved", "--module", f"{module}:given", "--input", "5x8", "--json"]
    assert run_command(words) == 0
    assert json.loads(capsys.readouterr().out)["saved_bytes"] == 4 * 5 * 8
    losses = [
        profiled(capsys, f"{module}:given", "--input", "5x8", "--seed", seed, *ARGUMENTS)[
            "strategies"
        ][0]["loss"]
        for seed in ("0", "0", "1")
    ]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("module", "code", "words"),
    [
        ("ckpt_test_nets:net", 2, "gives a module without an input\n"),
        ("ckpt_test_nets:nett", 2, "unknown name in `ckpt_test_nets`: `nett`\n"),
        ("ckpt_test_nets:needs", 2, "called without arguments, which it does not take: missing a"),
        ("ckpt_no_such.nets:net", 2, "`ckpt_no_such.nets` cannot be imported: ModuleNotFound"),
        ("ckpt_test_nets", 2, "is not FILE.py:MAKE and not PACKAGE.MODULE:MAKE"),
    ],
)
def test_a_name_that_stands_for_no_module(
    capsys: pytest.CaptureFixture[str], package: str, module: str, code: int, words: str
) -> None:
    assert run_command(["run", "--module", module]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
