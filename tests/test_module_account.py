"""What a module's peak consists of, and in which part of the pass it is: sums to the byte."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptcli import units
from ckptcli.cli.main import run_command
from ckptcli.measure.judge import all_fixed
from ckptcli.measure.memory import PeakLive
from ckptcli.report.readings import peak_reading
from tests.backend_kit import NEEDS_TORCH
from tests.records import none_record
from tests.test_torch_blocks import CASES, LLAMA, NEEDS_TRANSFORMERS, rows_of
from tests.torch_modules import profiled

MIB = 2**20
LIVE = PeakLive(
    (), 10 * MIB, 3, {"parameter": 4 * MIB, "gradient of a parameter": 5 * MIB, "saved": MIB}
)
FILE = """
import torch
from torch import nn


class Mean(nn.Module):
    def forward(self, x):
        return x.mean()


def chain():
    layers = [layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.Tanh())]
    return nn.Sequential(*layers, Mean()), torch.rand(256, 64)


def wide():
    return nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)), torch.rand(4, 512)


class Softmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.register = nn.Linear(4, 4), self.register_buffer("scale", torch.ones(512))

    def forward(self, x):
        large = (self.inner(x).sum() * self.scale).expand(512, 512).exp()
        return large.detach().sum() + self.inner(x).sum()


def forward_alone():
    return Softmax(), torch.rand(2, 4)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return str(path)


def test_what_no_checkpoint_changes_is_told_where_it_is_nearly_all() -> None:
    memory = none_record().memory
    assert memory is not None
    module = replace(LIVE, module="layers.3")
    told = all_fixed(replace(memory, peak_live=module))
    assert told == ("no checkpoint can help: 9.0 of 10.0 MiB are parameters and their gradients")
    assert all_fixed(replace(memory, peak_live=replace(module, total_bytes=11 * MIB))) is None
    assert all_fixed(replace(memory, peak_live=LIVE)) is None
    assert units.part(512, 2048) == "512 B of 2.0 KiB"


@pytest.mark.parametrize(
    ("phase", "module", "words"),
    [
        ("backward", "layers.3", "live in the backward of `layers.3` (gradient of a parameter 5.0"),
        ("recompute", "layers.3", "live while `layers.3` is computed again (gradient"),
        ("forward", "(module)", "live in the forward of the module itself (gradient"),
        ("backward", "", "live in backward (gradient"),
    ],
)
def test_where_the_peak_is(phase: str, module: str, words: str) -> None:
    memory = none_record().memory
    assert memory is not None
    text = peak_reading(replace(memory, peak_live=replace(LIVE, phase=phase, module=module)))
    assert words in text
    assert ("in backward;" in text) == (phase == "forward")


def whys(row: dict[str, Any]) -> dict[str, int]:
    return dict(row["peak_live"]["bytes_by_why"])


def check_sums(row: dict[str, Any]) -> None:
    live = row["peak_live"]
    assert live["total_bytes"] == row["ledger_peak_bytes"] == sum(live["bytes_by_why"].values())
    if live["total_tensors"] == len(live["largest"]):
        counted: Counter[str] = Counter()
        for tensor in live["largest"]:
            counted[tensor["why"]] += tensor["bytes"]
        assert counted == live["bytes_by_why"]


@pytest.mark.slow
@NEEDS_TORCH
def test_a_chain_has_at_its_peak_what_is_worked_out_by_hand(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """Four activations: each Tanh holds what it gives, which is the next Linear's input."""
    rows = profiled(capsys, f"{file}:chain", "-q", "--threads", "1")["strategies"]
    activation, layer = 256 * 64 * 4, (64 * 64 + 64) * 4
    none, remat = rows
    for row in rows:
        check_sums(row)
        assert whys(row)["parameter"] == 4 * layer
        assert whys(row)["input"] == activation
    assert whys(none)["saved"] == 4 * activation
    assert whys(none)["gradient"] == 2 * activation  # of a tanh's output, and of its input
    assert (none["peak_live"]["phase"], none["peak_live"]["module"]) == ("backward", "7")
    assert whys(remat)["saved"] == 3 * activation  # the inputs of regions but the module's own
    assert whys(remat)["recomputed"] == 2 * activation  # what the last Linear and its Tanh give
    assert whys(remat)["gradient"] == activation
    assert (remat["peak_live"]["phase"], remat["peak_live"]["module"]) == ("recompute", "7")


@pytest.mark.slow
@NEEDS_TORCH
def test_parameters_and_gradients_alone_are_told(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    command = ["run", "--engine", "torch", "--reps", "1", "-v", "--module", f"{file}:wide"]
    assert run_command([*command, "--width", "150"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("no checkpoint can help: 4.0 of 4.0 MiB") == 1
    assert "checkpoint larger blocks" not in out
    assert "in the backward of `0` (gradient of a parameter 2.0 MiB, parameter 2.0 MiB, " in out
    assert "why size module op shape" in out


@pytest.mark.slow
@NEEDS_TORCH
def test_the_pass_is_drawn_as_it_went(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path
) -> None:
    """Its highest point is the ledger's peak, and its last what is left."""
    exports = [
        word
        for name in ("a.svg", "a.trace.json", "a.html", "a.json")
        for word in ("--export", str(tmp_path / name))
    ]
    command = ["run", "--reps", "1", "--module", f"{file}:chain", "--width", "120", *exports]
    assert run_command(command) == 0
    out = capsys.readouterr().out
    assert "live bytes over the pass, forward | backward" in out
    assert "while `7` is computed again" in out
    for row in json.loads((tmp_path / "a.json").read_text())["strategies"]:
        points = row["trace"]["timeline"]
        assert max(point["high_bytes"] for point in points) == row["ledger_peak_bytes"]
        assert points[-1]["end_bytes"] >= row["after_backward_bytes"]
        assert (points[0]["phase"], points[0]["module"], points[0]["op"]) == (
            "forward",
            "0",
            "addmm",
        )
        assert [p["start_s"] for p in points] == sorted(p["start_s"] for p in points)
    assert "in the backward of `7`" in (tmp_path / "a.svg").read_text()
    assert ">Graph<" not in (tmp_path / "a.html").read_text()
    events = json.loads((tmp_path / "a.trace.json").read_text())["traceEvents"]
    assert {"addmm", "tanh", "mm"} <= {event["name"] for event in events}


@pytest.mark.slow
@NEEDS_TORCH
def test_a_peak_in_forward(capsys: pytest.CaptureFixture[str], file: str) -> None:
    row = profiled(capsys, f"{file}:forward_alone", "-q", "-s", "none")["strategies"][0]
    check_sums(row)
    live = row["peak_live"]
    assert (live["phase"], live["module"]) == ("forward", "(module)")
    assert whys(row)["buffer"] == 512 * 4
    assert live["largest"][0]["op"] == "exp"
    assert live["largest"][0]["source"].endswith(
        f"net.py:{1 + FILE[: FILE.index('large =')].count(chr(10))}"
    )


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    "name",
    ["structures.py:decoder", "structures.py:stages", "repeated.py:own_reentrant", "hooks.py:make"],
)
def test_the_account_sums_to_the_peak(capsys: pytest.CaptureFixture[str], name: str) -> None:
    strategies = ["remat", *(["own"] if ":own" in name else [])]
    command = ["run", "--engine", "torch", "--reps", "1", "--json", "--threads", "1", "-q"]
    named = [word for strategy in strategies for word in ("-s", strategy)]
    assert run_command([*command, *named, "--module", f"{CASES}/{name}"]) in (0, 5)

    for row in json.loads(capsys.readouterr().out)["strategies"]:
        check_sums(row)
        assert (row["strategy"] == "none") == ("recomputed" not in whys(row))


@pytest.mark.slow
@NEEDS_TORCH
@NEEDS_TRANSFORMERS
def test_a_llama_peaks_in_the_loss_without_checkpoints_and_in_a_block_with_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "llama.py"
    path.write_text(LLAMA)
    _, rows = rows_of(capsys, str(path) + ":uncached", "remat")
    for row in rows.values():
        check_sums(row)
    assert rows["none"]["peak_live"]["total_bytes"] == 17_792_648
    assert rows["remat"]["peak_live"]["total_bytes"] == 10_244_744
    assert rows["remat"]["peak_live"]["module"] == "model.layers.0.mlp"
    logits = 256 * 1000 * 4
    assert [t["bytes"] for t in rows["none"]["peak_live"]["largest"][:3]] == [logits] * 3
