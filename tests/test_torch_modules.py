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

pytestmark = [pytest.mark.slow, NEEDS_TORCH]

CKPT = [sys.executable, "-m", "ckptcli"]
FILE = '''
import random

import torch
from torch import nn


def sequence():
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)), torch.rand(16, 8)


def dropout():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.5), nn.Linear(32, 4)), torch.rand(16, 8)


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


class Moody(nn.Module):
    """Computes something else when it is called again in a pass: no checkpoint survives that."""

    def __init__(self):
        super().__init__()
        self.inner = MoodyPart()
        self.example_input = torch.rand(2, 3)

    def forward(self, x):
        self.inner.calls = 0
        return self.inner(x)


class MoodyPart(nn.Linear):
    def __init__(self):
        super().__init__(3, 3)

    def forward(self, x):
        self.calls += 1
        return torch.tanh(super().forward(x if self.calls == 1 else x[:1]))


class Chance(nn.Module):
    """Draws from a state that is not PyTorch's."""

    def forward(self, x):
        return x * random.random()


def chance():
    return nn.Sequential(nn.Linear(3, 3), Chance(), nn.Linear(3, 3)), torch.rand(2, 3)


class ChanceBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * random.random()


class LateChance(nn.Module):
    def forward(self, x):
        return ChanceBackward.apply(x)


def late_chance():
    return nn.Sequential(nn.Linear(3, 3), LateChance()), torch.rand(2, 3)


def powers():
    """A buffer moves in every pass, and the output follows it."""
    layer = nn.utils.spectral_norm(nn.Linear(3, 3))
    return nn.Sequential(layer, nn.Tanh(), nn.Linear(3, 3)), torch.rand(2, 3)


def block():
    return nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.1))


def blocks():
    return nn.Sequential(nn.Sequential(*(block() for _ in range(8)))), torch.rand(64, 16)


def flat():
    return nn.Sequential(*(part for _ in range(4) for part in block())), torch.rand(64, 16)


def twice():
    """One module in two places, and children without a parameter in front."""
    act = nn.Tanh()
    layers = [nn.Flatten(), act, nn.Linear(8, 8), act, nn.Linear(8, 8), act]
    return nn.Sequential(*layers), torch.rand(4, 8)


class Loop(nn.Module):
    """The Sequential is there, but its forward is not what runs."""

    def __init__(self):
        super().__init__()
        self.steps = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3)), nn.Tanh())
        self.example_input = torch.rand(4, 8)

    def forward(self, x):
        for step in self.steps:
            x = torch.sigmoid(step(x)) + x
        return x


class Bare(nn.Module):
    """Its one parameter is its own; its child has none."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.act = nn.Tanh()
        self.example_input = torch.rand(2, 3)

    def forward(self, x):
        return self.act(x * self.scale)


def in_place():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(True), nn.Linear(8, 8)), torch.rand(4, 8)


def in_place_first():
    blocks = (nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 8)) for _ in range(2))
    return nn.Sequential(nn.Linear(8, 8), *blocks), torch.rand(4, 8)


class InPlaceLoop(nn.Module):
    def __init__(self):
        super().__init__()
        network, self.example_input = in_place_first()
        self.steps = nn.ModuleList(network)

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


class Doubles(nn.Module):
    """In place, unseen by autograd: PyTorch cannot tell, and computes again from other values."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        y = torch.tanh(self.inner(x.clone()))
        x.data.mul_(2)
        return y


def wrong():
    return nn.Sequential(nn.Linear(8, 8), Doubles(), nn.Linear(8, 8)), torch.rand(4, 8)


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


def childless():
    return nn.Linear(3, 3), torch.rand(2, 3)


class Apart(nn.Linear):
    def forward(self, x):
        return x.sum()


def unconnected():
    return nn.Sequential(Apart(3, 3)), torch.rand(2, 3)


def talks():
    print("hello")
    return sequence()


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


def profiled(capsys: pytest.CaptureFixture[str], module: str, *arguments: str) -> dict[str, Any]:
    command = ["run", "--engine", "torch", "--module", module, "--reps", "2", "--json"]
    assert run_command([*command, *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def listed(capsys: pytest.CaptureFixture[str], module: str) -> dict[str, Any]:
    assert run_command(["saved", "--engine", "torch", "--module", module, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_sequence_is_profiled(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """Linear holds its input, tanh its output: two storages, one of them also the next input."""
    data = profiled(capsys, f"{file}:sequence")
    none, remat = data["rows"]
    assert (data["schema"], data["rounds"]) == ("ckpt.module/1", 2)
    assert data["children"] == ["0", "1", "2"]
    assert (none["regions"], remat["regions"]) == ([], [["0", "1"], ["2"]])
    assert data["parameters_bytes"] == 4 * (8 * 32 + 32 + 32 * 4 + 4)
    assert data["input_bytes"] == 4 * 16 * 8
    assert none["memory"]["saved_bytes"] == 4 * 16 * 32
    assert remat["memory"]["saved_bytes"] == 4 * 16 * 32  # the input of the second region
    assert [len(row["total_s"]["samples"]) for row in data["rows"]] == [2, 2]
    assert remat["agreement"]["agrees"]


@pytest.mark.parametrize("name", ["dropout", "normalized", "Net", "double"])
def test_gradients_are_those_without_checkpoints(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    """Dropout: the recomputation draws the same mask."""
    _, remat = profiled(capsys, f"{file}:{name}", "-q")["rows"]
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
    _, remat = json.loads(capsys.readouterr().out)["rows"]
    assert (remat["agreement"]["loss_ulp"], remat["agreement"]["agrees"]) == (0.0, False)
    assert remat["judgement"]["word"] == "wrong"


def test_state_that_moves_twice_is_named(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = profiled(capsys, f"{file}:normalized")
    named = {text.split("`")[1] for text in data["warnings"] if text.startswith("remat: buffer")}
    assert named == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}


def test_what_is_not_finite_is_null(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = profiled(capsys, f"{file}:diverged")
    none, remat = data["rows"]
    assert (none["agreement"]["loss"], remat["agreement"]["loss"]) == (None, None)
    assert remat["agreement"]["agrees"]  # the same is not finite in both
    for name in ("none", "remat"):
        assert any(text.startswith(f"{name}: the loss is nan") for text in data["warnings"])


def test_what_the_file_prints_is_no_result(capsys: pytest.CaptureFixture[str], file: str) -> None:
    assert run_command(["saved", "--engine", "torch", "--module", f"{file}:talks", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["saved_tensors"] == 1
    assert "hello" in captured.err


def test_lists_and_dicts_are_taken_apart(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = profiled(capsys, f"{file}:Net")
    assert data["children"] == [*(f"blocks.{i}" for i in range(3)), "heads.left", "heads.right"]
    assert data["rows"][1]["regions"] == [[path] for path in data["children"]]
    assert data["title"].endswith(f"net.py:Net, Net with {3 * 72 + 18 + 27 + 2} parameters")


def test_what_is_held_is_listed(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = listed(capsys, f"{file}:sequence")
    assert (data["schema"], data["saved_tensors"]) == ("ckpt.saved-module/1", 1)
    (saved,) = data["saved"]
    assert saved["module"] == "1 Tanh"
    assert sorted(saved["ops"]) == ["AddmmBackward0", "TanhBackward0"]
    assert (saved["shape"], saved["dtype"], saved["bytes"]) == ([16, 32], "float32", 4 * 16 * 32)


@pytest.mark.parametrize("name", ["sequence", "dropout", "normalized", "Net", "double"])
def test_the_list_sums_to_what_the_profile_says(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    """Hooks of autograd on one side, an account of live storages on the other."""
    memory = profiled(capsys, f"{file}:{name}", "-q")["rows"][0]["memory"]
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
        ("unconnected", 1, "depends on a parameter"),
        ("elsewhere", 2, "on `meta`: a module is timed on the CPU alone"),
        ("input_elsewhere", 2, "on `meta`: a module is timed on the CPU alone"),
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


def test_a_child_that_computes_something_else_again(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    command = ["run", "--engine", "torch", "--module", f"{file}:Moody", "--reps", "1", "--json"]
    assert run_command(command) == 1
    captured = capsys.readouterr()
    none, remat = json.loads(captured.out)["rows"]
    assert (none["reason"], len(none["passes"]["counted"])) == (None, 1)
    assert "it fails when it is computed again: " in remat["reason"]
    assert "CheckpointError: " in remat["reason"]
    assert f"Error: remat: {remat['reason']}" in captured.err


def rows_of(
    capsys: pytest.CaptureFixture[str], module: str, *strategies: str
) -> dict[str, dict[str, Any]]:
    named = [word for name in strategies for word in ("-s", name)]
    data = profiled(capsys, module, "-q", "--threads", "1", *named)
    return {row["strategy"]: row for row in data["rows"]}


def test_strategies_group_the_children(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """An only container is entered; a Sequential in it is one child, so that its inside is
    computed again and one input of 64 x 16 is held for each region but the first.
    """
    names = ("none", "remat", "remat:every=3", "segments:2", "sqrt", "remat:every=4,last=plain")
    rows = rows_of(capsys, f"{file}:blocks", *names)
    assert list(rows) == list(names)
    sizes = {name: [len(paths) for paths in row["regions"]] for name, row in rows.items()}
    assert sizes == {
        "none": [],
        "remat": [1] * 8,
        "remat:every=3": [3, 3, 2],
        "segments:2": [4, 4],
        "sqrt": [3, 3, 2],
        "remat:every=4,last=plain": [4],
    }
    assert rows["remat:every=3"]["regions"][0] == ["0.0", "0.1", "0.2"]
    for name in names[1:-1]:
        saved_bytes = rows[name]["memory"]["saved_bytes"]
        assert saved_bytes == (len(sizes[name]) - 1) * 4 * 64 * 16
        assert rows[name]["agreement"]["gradient_ulp"] == 0.0
        assert rows[name]["judgement"]["word"] == "effective"
    assert rows["none"]["judgement"] is None


def test_what_has_no_parameter_joins_the_region_before_it(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    rows = rows_of(capsys, f"{file}:flat", "none", "remat", "remat:every=2", "remat:every=3")
    triples = [[str(3 * i + j) for j in range(3)] for i in range(4)]
    assert rows["remat"]["regions"] == rows["remat:every=3"]["regions"] == triples
    sizes = [len(paths) for paths in rows["remat:every=2"]["regions"]]
    assert sizes == [2, 4, 2, 4]  # 0-1, 2-3 and 4-5, ...
    assert rows["remat"]["memory"]["saved_bytes"] == 3 * 4 * 64 * 16
    shared = rows_of(capsys, f"{file}:twice", "remat")["remat"]
    assert shared["regions"] == [["0", "1", "2", "3"], ["4", "5"]]
    assert shared["agreement"]["gradient_ulp"] == 0.0


@pytest.mark.parametrize("name", ["Net", "Loop"])
def test_children_that_no_sequential_calls_cannot_be_grouped(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    rows = rows_of(capsys, f"{file}:{name}", "none", "remat", "remat:every=3")
    assert all(len(paths) == 1 for paths in rows["remat"]["regions"])
    assert len(rows["remat"]["regions"]) == (5 if name == "Net" else 3)
    assert rows["remat"]["agreement"]["gradient_ulp"] == 0.0
    assert "the module's own forward calls its children" in rows["remat:every=3"]["reason"]


def test_policies_are_those_of_the_engine(capsys: pytest.CaptureFixture[str], file: str) -> None:
    dots = "remat:every=4,policy=dots_saveable"
    names = "remat:policy=save_only_these_names(a)"
    rows = rows_of(capsys, f"{file}:blocks", "remat:every=4", dots, names, "balanced")
    saved = [rows[name]["memory"]["saved_bytes"] for name in ("remat:every=4", dots, "none")]
    assert saved == sorted(set(saved))
    assert rows[dots]["agreement"]["gradient_ulp"] == 0.0
    assert "it knows no names" in rows[names]["reason"]
    assert "decides op by op" in rows["balanced"]["reason"]
    everything = "remat:every=3,policy=everything_saveable"
    saves_all = rows_of(capsys, f"{file}:sequence", everything)[everything]
    assert (saves_all["reason"], saves_all["judgement"]["word"]) == (None, "worse")


def test_without_children_none_is_measured(capsys: pytest.CaptureFixture[str], file: str) -> None:
    rows = rows_of(capsys, f"{file}:childless")
    assert len(rows["none"]["passes"]["counted"]) == 2
    assert rows["remat"]["reason"] == "the module has no children to checkpoint"
    assert "there is nothing to checkpoint" in rows_of(capsys, f"{file}:Bare")["remat"]["reason"]
    (alone,) = rows_of(capsys, f"{file}:childless", "none").values()
    assert alone["strategy"] == "none"


def test_an_activation_in_place_joins_its_layer(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """Alone in a region it would overwrite what the region is computed again from."""
    remat = rows_of(capsys, f"{file}:in_place")["remat"]
    assert (remat["reason"], remat["agreement"]["gradient_ulp"]) == (None, 0.0)
    assert remat["judgement"]["word"] == "no effect"
    assert "checkpoint larger blocks (-s remat:every=K)" in remat["judgement"]["reason"]


def test_an_op_in_place_on_the_input_of_a_region(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    command = ["run", "--engine", "torch", "--module", f"{file}:in_place_first", "--reps", "2"]
    names = ["-s", "remat", "-s", "remat:every=3"]
    assert run_command([*command, *names, "--json", "-q"]) == 1
    captured = capsys.readouterr()
    none, remat, one = json.loads(captured.out)["rows"]
    hint = "use inplace=False, or checkpoint larger blocks (-s remat:every=K)"
    assert hint in remat["reason"]
    assert f"Error: remat: {remat['reason']}" in captured.err
    assert "modified by an inplace operation" not in captured.err
    assert [len(row["passes"]["counted"]) for row in (none, remat, one)] == [2, 0, 2]
    assert one["agreement"]["gradient_ulp"] == 0.0
    assert run_command([*command, "-q"]) == 1
    screen = capsys.readouterr().out
    assert f"  n/a: {remat['reason']}" in screen


def test_where_nothing_can_be_grouped_larger_blocks_are_not_advised(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    module = f"{file}:InPlaceLoop"
    assert run_command(["run", "--engine", "torch", "--module", module, "--reps", "1", "-q"]) == 1
    screen = capsys.readouterr().out
    assert "use inplace=False\n" in screen
    assert "every=K" not in screen


def test_a_wrong_gradient_is_called_wrong(capsys: pytest.CaptureFixture[str], file: str) -> None:
    command = ["run", "--engine", "torch", "--module", f"{file}:wrong", "--reps", "1", "-q"]
    assert run_command(command) == 5
    assert "verdict: wrong: loss or gradients differ from those of `none`" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("name", "apart"),
    [("chance", "the loss is "), ("late_chance", "a gradient of one pass and the next")],
)
def test_a_module_that_differs_each_time_is_refused(
    capsys: pytest.CaptureFixture[str], file: str, name: str, apart: str
) -> None:
    command = ["run", "--engine", "torch", "--module", f"{file}:{name}", "--reps", "1"]
    assert run_command(command) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"`{file}:{name}` does something else each time: {apart}" in captured.err
    assert "hint: draw random numbers with torch" in captured.err
    assert "DIFFERS" not in captured.err


def test_a_buffer_that_moves_is_no_other_module(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """Both passes start from the same buffers."""
    command = ["run", "--engine", "torch", "--module", f"{file}:powers", "--reps", "1"]
    run_command(command)
    assert "does something else each time" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--module", "{file}:sequence"], "needs --engine torch alone"),
        (["run", "--module", "{file}:sequence", "--engine", "jax"], "needs --engine torch alone"),
        (["saved", "--engine", "torch"], "--engine torch needs --module here"),
        (["run", "--engine", "torch", "--module", "net"], "is not FILE.py:MAKE"),
        (["run", "--engine", "torch", "--module", "nowhere.py:make"], "cannot be loaded"),
        (
            ["run", "--engine", "torch", "--module", "{file}:sequence", "--export", "x.md"],
            "--export does not take a module",
        ),
        (
            ["run", "--engine", "torch", "--module", "{file}:sequence", "--fail-on", "time > 1"],
            "--fail-on does not take a module",
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
    arguments = ["saved", "--engine", "torch", "--module", f"{file}:sequence", "-s", "remat"]
    assert run_command(arguments) == 0
    assert "warning: --strategy has no effect on a module" in capsys.readouterr().err


def test_the_screens(file: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    shown = {
        command: subprocess.run(
            [*CKPT, command, "--engine", "torch", "--module", f"{file}:{name}", "-q", *more],
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
    assert "\n remat " in run
    assert "\n  verdict: effective: peak " in run
    assert "loss and gradients are those of none, bit for bit" in run
    assert "\n  8 regions of 1 child\n" in run
    assert "\n  2 regions of 3 children; 2 of 8 children without\n" in run
    assert "1 Dropout" in saved
    assert "2 tensors" in saved
