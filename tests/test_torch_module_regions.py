"""`--module FILE.py:MAKE`: what strategies group, the verdicts, and what a checkpoint breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from tests.backend_kit import NEEDS_TORCH
from tests.torch_modules import profiled

pytestmark = [pytest.mark.slow, NEEDS_TORCH]

FILE = '''
import random

import torch
from torch import nn


def sequence():
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)), torch.rand(16, 8)


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
    """Draws from what no seed sets."""

    def forward(self, x):
        return x * random.SystemRandom().random()


def chance():
    return nn.Sequential(nn.Linear(3, 3), Chance(), nn.Linear(3, 3)), torch.rand(2, 3)


class ChanceBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * random.SystemRandom().random()


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


class Replaced(nn.Module):
    """Its forward is its own, not its class's, as of a module that is compiled."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.forward = lambda x: torch.tanh(self.inner(x))


class Around(nn.Module):
    """One child with a forward of its own, a compiled one, and one that is called by keyword."""

    def __init__(self):
        super().__init__()
        self.replaced = Replaced()
        self.compiled = torch.jit.script(nn.Linear(8, 8))
        self.by_keyword = nn.Linear(8, 8)
        self.example_input = torch.rand(4, 8)

    def forward(self, x):
        return self.by_keyword(input=self.compiled(self.replaced(x)))


def compiled_inside():
    return nn.Sequential(torch.jit.script(nn.Linear(8, 8)), nn.Tanh()), torch.rand(4, 8)


def compiled_whole():
    return torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.Tanh())), torch.rand(4, 8)


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
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(True), nn.Linear(8, 8)), torch.rand(32768, 8)


def in_place_first():
    blocks = (nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 8)) for _ in range(2))
    return nn.Sequential(nn.Linear(8, 8), *blocks), torch.rand(4, 8)


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


class Net(nn.Module):
    """Modules in a list and in a dict."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.heads = nn.ModuleDict({"left": nn.Linear(8, 2), "right": nn.Linear(8, 3)})
        self.example_input = torch.rand(4, 8)

    def forward(self, x):
        for block in self.blocks:
            x = torch.tanh(block(x))
        return [head(x) for head in self.heads.values()]


def childless():
    return nn.Linear(3, 3), torch.rand(2, 3)
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return str(path)


def test_a_child_that_computes_something_else_again(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    command = ["run", "--engine", "torch", "--module", f"{file}:Moody", "--reps", "1", "--json"]
    assert run_command(command) == 1
    captured = capsys.readouterr()
    none, remat = json.loads(captured.out)["strategies"]
    assert (none["reason"], len(none["passes"]["counted"])) == (None, 1)
    assert "it fails when it is computed again: " in remat["reason"]
    assert "CheckpointError: " in remat["reason"]
    assert f"Error: remat: {remat['reason']}" in captured.err


def rows_of(
    capsys: pytest.CaptureFixture[str], module: str, *strategies: str
) -> dict[str, dict[str, Any]]:
    named = [word for name in strategies for word in ("-s", name)]
    data = profiled(capsys, module, "-q", "--threads", "1", *named)
    return {row["strategy"]: row for row in data["strategies"]}


def test_strategies_group_the_blocks(capsys: pytest.CaptureFixture[str], file: str) -> None:
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
        saved_bytes = rows[name]["saved_bytes"]
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
    assert rows["remat"]["saved_bytes"] == 3 * 4 * 64 * 16
    shared = rows_of(capsys, f"{file}:twice", "remat")["remat"]
    assert shared["regions"] == [["0", "1", "2", "3"], ["4", "5"]]
    assert shared["agreement"]["gradient_ulp"] == 0.0


def test_children_by_index(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """Children 0, 3, 6 and 9 have parameters; the others are activations."""
    names = ("remat:only=3", "remat:only=0,3..5", "remat:only=3..8,every=6", "remat:only=1")
    rows = rows_of(capsys, f"{file}:flat", "none", *names)
    assert rows[names[0]]["regions"] == [["3"]]
    assert rows[names[1]]["regions"] == [["0"], ["3", "4", "5"]]
    assert rows[names[2]]["regions"] == [[str(child) for child in range(3, 9)]]
    for name in names[:3]:
        assert rows[name]["agreement"]["gradient_ulp"] == 0.0
    assert rows[names[3]]["reason"] == (
        "no block in a region has a parameter: there is nothing to checkpoint"
    )
    own_forward = rows_of(capsys, f"{file}:Net", "remat:only=0,2")
    assert len(own_forward["remat:only=0,2"]["regions"]) == 2


@pytest.mark.parametrize("name", ["Net", "Loop"])
def test_children_that_no_sequential_calls_cannot_be_grouped(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    rows = rows_of(capsys, f"{file}:{name}", "none", "remat", "remat:every=3")
    assert all(len(paths) == 1 for paths in rows["remat"]["regions"])
    assert len(rows["remat"]["regions"]) == (5 if name == "Net" else 3)
    assert rows["remat"]["agreement"]["gradient_ulp"] == 0.0
    assert "calls its blocks, and not in a plain loop" in rows["remat:every=3"]["reason"]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_what_is_compiled_is_out_of_reach(capsys: pytest.CaptureFixture[str], file: str) -> None:
    around = rows_of(capsys, f"{file}:Around", "remat")["remat"]
    assert around["regions"] == [["replaced"], ["by_keyword"]]
    inside = rows_of(capsys, f"{file}:compiled_inside", "remat")["remat"]
    assert inside["regions"] == [["0", "1"]]
    for row in (around, inside):
        assert row["agreement"]["gradient_ulp"] == 0.0
    whole = rows_of(capsys, f"{file}:compiled_whole", "remat")["remat"]
    assert whole["reason"] == "the module has no block to checkpoint: no child with a parameter"


def test_policies_are_those_of_the_engine(capsys: pytest.CaptureFixture[str], file: str) -> None:
    dots = "remat:every=4,policy=dots_saveable"
    names = "remat:policy=save_only_these_names(a)"
    rows = rows_of(capsys, f"{file}:blocks", "remat:every=4", dots, names, "balanced")
    saved = [rows[name]["saved_bytes"] for name in ("remat:every=4", dots, "none")]
    assert saved == sorted(set(saved))
    assert rows[dots]["agreement"]["gradient_ulp"] == 0.0
    assert "it knows no names" in rows[names]["reason"]
    assert "the policy compute_bound_saveable" in rows["balanced"]["counterpart"]
    assert len(rows["balanced"]["regions"]) == 1
    assert rows["balanced"]["agreement"]["gradient_ulp"] == 0.0
    everything = "remat:every=3,policy=everything_saveable"
    saves_all = rows_of(capsys, f"{file}:sequence", everything)[everything]
    assert (saves_all["reason"], saves_all["judgement"]["word"]) == (None, "worse")


def test_without_children_none_is_measured(capsys: pytest.CaptureFixture[str], file: str) -> None:
    rows = rows_of(capsys, f"{file}:childless")
    assert len(rows["none"]["passes"]["counted"]) == 2
    assert (
        rows["remat"]["reason"]
        == "the module has no block to checkpoint: no child with a parameter"
    )
    assert "no child with a parameter" in rows_of(capsys, f"{file}:Bare")["remat"]["reason"]
    (alone,) = rows_of(capsys, f"{file}:childless", "none").values()
    assert alone["strategy"] == "none"


def test_an_activation_in_place_joins_its_layer(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """Alone in a region it would overwrite what the region is computed again from."""
    remat = rows_of(capsys, f"{file}:in_place")["remat"]
    assert (remat["reason"], remat["agreement"]["gradient_ulp"]) == (None, 0.0)
    assert remat["judgement"]["word"] == "no effect"
    assert "checkpoint larger blocks (-s remat:every=K, or" in remat["judgement"]["reason"]


def test_an_op_in_place_on_the_input_of_a_region(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    command = ["run", "--engine", "torch", "--module", f"{file}:in_place_first", "--reps", "2"]
    names = ["-s", "remat", "-s", "remat:every=3", "--blocks", "*"]
    assert run_command([*command, *names, "--json", "-q"]) == 1
    captured = capsys.readouterr()
    none, remat, one = json.loads(captured.out)["strategies"]
    assert "use inplace=False" in remat["reason"]
    assert f"Error: remat: {remat['reason']}" in captured.err
    assert "modified by an inplace operation" not in captured.err
    assert [len(row["passes"]["counted"]) for row in (none, remat, one)] == [2, 0, 2]
    assert one["agreement"]["gradient_ulp"] == 0.0
    assert run_command([*command, "-q"]) == 1
    screen = capsys.readouterr().out
    assert f"n/a: {remat['reason']}" in " ".join(screen.split())


def test_a_wrong_gradient_is_called_wrong(capsys: pytest.CaptureFixture[str], file: str) -> None:
    command = ["run", "--engine", "torch", "--module", f"{file}:wrong", "--reps", "1"]
    assert run_command(command) == 5
    assert "  wrong: loss or gradients differ from those of `none`" in (capsys.readouterr().out)


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
