"""A policy is asked once a value; one that answers differently in the next pass is told of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command

POLICIES = """
ASKED = []

def every_second(value):
    if value.op != "matmul":
        return False
    ASKED.append(value.op)
    return len(ASKED) % 2 == 1

def by_name(value):
    ASKED.append(value.name)
    return value.name == "p"

def products(value):
    return value.op == "matmul"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(POLICIES)


def test_a_policy_that_counts_is_asked_once_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    """Of five products the first, third and fifth; the silu network names each after it is made."""
    strategy = "remat:every=5,policy=mine.py:every_second"
    assert run_command(["saved", "-l", "5", "-n", "16", "-s", strategy, "--json"]) == 0
    captured = capsys.readouterr()
    (strategy_saved,) = json.loads(captured.out)["strategies"]
    assert [entry["node"] for entry in strategy_saved["saved"]] == [6, 12, 18]
    assert "the policy of region `layers 0 to 4` allowed 3 values" in captured.err


def test_a_policy_that_looks_for_a_name_is_asked_again_when_there_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    strategy = "remat:every=2,policy=mine.py:by_name"
    assert run_command(["saved", "-l", "2", "-n", "8", "-s", strategy, "--json"]) == 0
    (strategy_saved,) = json.loads(capsys.readouterr().out)["strategies"]
    assert [entry["op"] for entry in strategy_saved["saved"]] == ["matmul", "matmul"]


def test_a_policy_that_answers_otherwise_in_the_next_pass_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["run", "-l", "5", "-n", "8", "--reps", "1", "--json", "-s"]
    assert run_command([*words, "remat:every=5,policy=mine.py:every_second"]) == 0
    captured = capsys.readouterr()
    (warning,) = [line for line in captured.err.splitlines() if "in the next" in line]
    assert "the policy of region `layers 0 to 4` allowed 3 values (nodes 6, 12, 18) in" in warning
    assert "and 2 (nodes 6, 12) in" not in warning
    assert run_command([*words, "remat:every=5,policy=mine.py:products"]) == 0
    assert "in the next" not in capsys.readouterr().err


UNUSED = """
from ckptcli.autodiff.regions import checkpoint

def block(h):
    return h.exp().sin()

def make(device):
    w = device.tensor([0.5, 0.7]).require_grad()
    head = device.tensor([1.0]).require_grad()
    cut = device.tensor([1.0]).require_grad()
    idle = checkpoint(block)

    def loss():
        h = w
        for layer in device.layers(4):
            h = checkpoint(block)(h)
            if layer == 1:
                break
        side = idle(h.detach())
        with h.region("nothing"):
            pass
        return (h * cut.detach()).sum()

    return loss
"""


def test_what_of_a_program_never_runs_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.py").write_text(UNUSED)
    words = ["--workload", "p.py:make"]
    assert run_command(["run", *words, "--reps", "1", "-s", "none", "-s", "balanced"]) == 0
    told = capsys.readouterr().err
    parameters = "no gradient reaches `leaf 1`, `cut`: the loss never uses them, or only detached"
    assert told.count(parameters) == 1
    for strategy in ("none", "balanced"):
        lints = [line for line in told.splitlines() if f"warning: {strategy}: " in line]
        assert any("a loop over 4 layers ended after 2: the others never ran" in n for n in lints)
        assert any("region `nothing` is empty: no op ran inside" in lint for lint in lints)
        assert any("region `block` never runs in backward: no gradient" in lint for lint in lints)
    assert run_command(["check", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  no gradient         the loss never uses leaf 1, cut, or only detached" in lines
    assert run_command(["check", "-n", "4"]) == 0
    assert "no gradient" not in capsys.readouterr().out
    assert run_command(["run", "-n", "8", "-l", "3", "--reps", "1", "-s", "remat"]) == 0
    told = capsys.readouterr().err
    assert not any(word in told for word in ("no gradient", "never ran", "never runs", "is empty"))
