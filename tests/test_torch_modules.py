"""`--module FILE.py:MAKE`: a PyTorch module of the user's own, in the real commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from tests.backend_kit import NEEDS_TORCH
from tests.torch_modules import profiled

pytestmark = [pytest.mark.slow, NEEDS_TORCH]

CKPT = [sys.executable, "-m", "ckptcli"]
FILE = '''
import torch
from torch import nn


def sequence():
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)), torch.rand(16, 8)


def dropout():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.5), nn.Linear(32, 4)), torch.rand(16, 8)


def blocks():
    """An only child with eight children."""
    parts = (nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.1)) for _ in range(8))
    return nn.Sequential(nn.Sequential(*parts)), torch.rand(64, 16)


def normalized():
    return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU()), torch.rand(16, 8)


def diverged():
    network, x = sequence()
    return network, x * float("inf")


def elsewhere():
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh()).to("meta"), torch.rand(2, 3)


def input_elsewhere():
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.rand(2, 3, device="meta")


def double():
    network, x = sequence()
    return network.double(), x.double()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x, scale):
        return scale * torch.relu(self.inner(x)) + x


class Net(nn.Module):
    """Blocks in a list, two inputs, outputs in a dict, a parameter without use."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.heads = nn.ModuleDict({"left": nn.Linear(8, 2), "right": nn.Linear(8, 3)})
        self.unused = nn.Parameter(torch.ones(2))
        self.example_input = (torch.rand(4, 8), 0.5)

    def forward(self, x, scale):
        for block in self.blocks:
            x = block(x, scale)
        return {"heads": [head(x) for head in self.heads.values()], "rows": torch.arange(4)}


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.example_input = torch.rand(2, 3)

    def forward(self, x):
        return self.inner(x) @ torch.ones(4, 4)  # the line that fails


def misfit():
    return nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(9, 8))), torch.rand(4, 8)


class Misfit(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.example_input = (torch.rand(2, 4), 0.5)

    def forward(self, x, scale):
        try:
            self.inner(x[:, :2])
        except RuntimeError:
            pass
        return scale * self.inner(x)  # the line that misfits


def misfit_alone():
    return nn.Linear(3, 3), torch.rand(2, 4)


def nothing():
    return 3


def without_input():
    return nn.Linear(3, 3)


def frozen():
    return nn.Linear(3, 3).requires_grad_(False), torch.rand(2, 3)


class Apart(nn.Linear):
    def forward(self, x):
        return x.sum()


def unconnected():
    return nn.Sequential(Apart(3, 3)), torch.rand(2, 3)


def talks():
    print("hello")
    return sequence()


class Chatter(nn.Sequential):
    def forward(self, x):
        print("hello")
        return super().forward(x)


def chatters():
    return Chatter(*(nn.Linear(4, 4) for _ in range(2))), torch.rand(3, 4)


def raises():
    raise KeyError("here")  # the line that raises
'''


def line_of(word: str) -> int:
    """The number of the line in the file that says so."""
    return FILE[: FILE.index(f"# the line that {word}")].count("\n") + 1


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return str(path)


def listed(capsys: pytest.CaptureFixture[str], module: str) -> dict[str, Any]:
    assert run_command(["saved", "--engine", "torch", "--module", module, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_sequence_is_profiled(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """Linear holds its input, tanh its output: two storages, one of them also the next input."""
    data = profiled(capsys, f"{file}:sequence")
    none, remat = data["strategies"]
    assert (data["schema"], data["rounds"]) == ("ckpt.run/1", 2)
    assert data["children"] == ["0", "1", "2"]
    assert (none["regions"], remat["regions"]) == ([], [["0", "1"], ["2"]])
    parameters_bytes, input_bytes = 4 * (8 * 32 + 32 + 32 * 4 + 4), 4 * 16 * 8
    assert none["params_input_bytes"] == parameters_bytes + input_bytes
    assert none["saved_bytes"] == 4 * 16 * 32
    assert remat["saved_bytes"] == 4 * 16 * 32  # the input of the second region
    assert [len(row["total_s"]["samples"]) for row in data["strategies"]] == [2, 2]
    assert remat["agreement"]["agrees"]


@pytest.mark.parametrize("name", ["dropout", "normalized", "Net", "double"])
def test_gradients_are_those_without_checkpoints(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    """Dropout: the recomputation draws the same mask."""
    _, remat = profiled(capsys, f"{file}:{name}", "-q")["strategies"]
    known = remat["agreement"]
    assert (known["loss_ulp"], known["gradient_ulp"]) == (0.0, 0.0)
    assert known["tolerance"] == (1e-12 if name == "double" else 1e-5)


def test_a_dropout_that_draws_again_is_caught(
    capsys: pytest.CaptureFixture[str], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from functools import partial

    import torch.utils.checkpoint as torch_checkpoint

    careless = partial(torch_checkpoint.checkpoint, preserve_rng_state=False)
    monkeypatch.setattr(torch_checkpoint, "checkpoint", careless)
    command = ["run", "--engine", "torch", "--module", f"{file}:dropout", "--reps", "1", "--json"]
    assert run_command(command) == 5
    _, remat = json.loads(capsys.readouterr().out)["strategies"]
    assert (remat["agreement"]["loss_ulp"], remat["agreement"]["agrees"]) == (0.0, False)
    assert remat["judgement"]["word"] == "wrong"


def test_state_that_moves_twice_is_named(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = profiled(capsys, f"{file}:normalized")
    (told,) = [text for text in data["warnings"] if text.startswith("remat: 3 buffers differ")]
    assert set(told.split("`")[3::2]) == {
        *("1.running_mean", "1.running_var", "1.num_batches_tracked")
    }


def test_what_is_not_finite_is_null(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = profiled(capsys, f"{file}:diverged")
    none, remat = data["strategies"]
    assert (none["agreement"]["loss"], remat["agreement"]["loss"]) == (None, None)
    assert remat["agreement"]["agrees"]  # the same is not finite in both
    for name in ("none", "remat"):
        assert any(text.startswith(f"{name}: the loss is nan") for text in data["warnings"])


def test_what_the_file_prints_is_no_result(capsys: pytest.CaptureFixture[str], file: str) -> None:
    assert run_command(["saved", "--engine", "torch", "--module", f"{file}:talks", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["saved_tensors"] == 1
    assert "hello" in captured.err


def test_what_it_prints_under_a_strategy_is_no_result(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    words = ["-q", "-s", "remat", "-s", "offload", "-s", "own", "-s", "framework"]
    rows = profiled(capsys, f"{file}:chatters", *words)["strategies"]
    assert next(r for r in rows if r["strategy"] == "offload")["reason"].startswith(
        "on a CPU nothing is moved"
    )


def test_lists_and_dicts_are_taken_apart(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = profiled(capsys, f"{file}:Net")
    assert data["children"] == [f"blocks.{i}" for i in range(3)]  # they have children, heads not
    assert data["strategies"][1]["regions"] == [[path] for path in data["children"]]
    assert data["workload"]["title"].endswith(
        f"net.py:Net, Net with {3 * 72 + 18 + 27 + 2} parameters"
    )


def test_what_is_held_is_listed(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = listed(capsys, f"{file}:sequence")
    assert (data["schema"], data["saved_tensors"]) == ("ckpt.saved/1", 1)
    (saved,) = data["saved"]
    assert saved["module"] == "1 Tanh"
    assert sorted(saved["ops"]) == ["AddmmBackward0", "TanhBackward0"]
    assert (saved["shape"], saved["dtype"], saved["bytes"]) == ([16, 32], "float32", 4 * 16 * 32)


@pytest.mark.parametrize("name", ["sequence", "dropout", "normalized", "Net", "double"])
def test_the_list_sums_to_what_the_profile_says(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    """Hooks of autograd on one side, an account of live storages on the other."""
    memory = profiled(capsys, f"{file}:{name}", "-q")["strategies"][0]
    data = listed(capsys, f"{file}:{name}")
    assert (data["saved_tensors"], data["saved_bytes"]) == (
        memory["saved_tensors"],
        memory["saved_bytes"],
    )
    assert all(saved["ops"] for saved in data["saved"])


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("raises", 1, f"net.py:{line_of('raises')} (`raise KeyError"),
        ("Fails", 1, f"net.py:{line_of('fails')} (`return self.inner(x) @"),
        ("nothing", 2, "gives an object of type int, not a module"),
        ("without_input", 2, "gives a module without an input"),
        ("frozen", 2, "has no parameter that requires a gradient"),
        ("unconnected", 2, "depends on a parameter"),
        ("elsewhere", 2, "on `meta`: a module is timed on the CPU or a CUDA device"),
        ("input_elsewhere", 2, "on `meta`: a module is timed on the CPU or a CUDA device"),
        ("misfit", 1, "in `1.0` (Linear), given float32 [4, 8]: RuntimeError: mat1 and mat2"),
        ("Misfit", 1, f"net.py:{line_of('misfits')} (`return scale *"),
        ("Misfit", 1, "`) in `inner` (Linear), given float32 [2, 4]: RuntimeError: mat1 and mat2"),
        ("misfit_alone", 1, "failed in Linear, given float32 [2, 4]: RuntimeError: mat1 and mat2"),
        ("sequenc", 2, "did you mean `sequence`?"),
    ],
)
def test_a_module_that_cannot_be_profiled(
    capsys: pytest.CaptureFixture[str], file: str, name: str, code: int, words: str
) -> None:
    only_profiled = name in ("elsewhere", "input_elsewhere")
    for command in ("run",) if only_profiled else ("run", "saved"):
        assert run_command([command, "--engine", "torch", "--module", f"{file}:{name}"]) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        assert words in captured.err


def test_an_error_in_the_module_shows_no_traceback(file: str) -> None:
    done = subprocess.run(
        [*CKPT, "run", "--engine", "torch", "--module", f"{file}:Fails"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"net.py:{line_of('fails')} (`" in done.stderr
    assert "RuntimeError: mat1 and mat2 shapes" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--module", "{file}:sequence", "--engine", "jax"], "needs --engine torch alone"),
        (["saved", "--engine", "torch"], "--engine torch needs --module here"),
        (["run", "--engine", "torch", "--module", "net"], "is not FILE.py:MAKE"),
        (
            ["run", "--engine", "torch", "--module", "nowhere.py:make"],
            "cannot be read: No such file",
        ),
        (
            ["run", "--engine", "torch", "--module", "{file}:sequence", "--fail-on", "peak > 1"],
            "unknown metric",
        ),
    ],
)
def test_a_wrong_command_line(
    capsys: pytest.CaptureFixture[str], file: str, arguments: list[str], words: str
) -> None:
    assert run_command([argument.format(file=file) for argument in arguments]) == 2
    assert words in capsys.readouterr().err


def test_options_without_effect_are_named(capsys: pytest.CaptureFixture[str], file: str) -> None:
    arguments = ["run", "--engine", "torch", "--module", f"{file}:sequence", "--reps", "1"]
    assert run_command([*arguments, "--n", "4", "-s", "remat:every=9"]) == 0
    error = capsys.readouterr().err
    assert "warning: --n has no effect on a module" in error
    assert "--strategy has no effect" not in error
    assert "warning: remat:every=9: every=9 is more than the 3 layers" in error
    arguments = ["saved", "--engine", "torch", "--module", f"{file}:sequence", "--n", "4"]
    assert run_command(arguments) == 0
    assert "warning: --n has no effect on a module" in capsys.readouterr().err


def test_the_screens(file: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    shown = {
        command: subprocess.run(
            [*CKPT, command, "--engine", "torch", "--module", f"{file}:{name}", *more],
            capture_output=True,
            encoding="utf-8",
            env=env,
        )
        for command, name, *more in (
            ("run", "blocks", "--reps", "6", "-s", "remat", "-s", "remat:every=3,last=plain"),
            ("saved", "dropout"),
        )
    }
    assert [done.returncode for done in shown.values()] == [0, 0]
    run, saved = (done.stdout for done in shown.values())
    assert "\nremat " in run
    assert "\nremat: effective: peak " in run
    assert "gradients identical\n" in run
    assert "\n  8 regions of 1 block, `0.0` to `0.7`\n" in run
    assert "\n  2 regions of 3 blocks, `0.0` to `0.5`; 2 of 8 blocks without\n" in run
    assert "1 Dropout" in saved
    assert "2 tensors" in saved
