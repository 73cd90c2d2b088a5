"""An exit code that was decided stays, whoever reads how much; and what is not decided is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command

CKPT = [sys.executable, "-m", "ckptcli"]
DIVISION: dict[str, Any] = {
    "ops": [
        {"op": "leaf", "req": True, "data": [0.1, 0.7]},
        {"op": "exp", "in": [0]},
        {"op": "cos", "in": [0]},
        {"op": "div", "in": [1, 2]},
        {"op": "mul", "in": [3, 3]},
        {"op": "sum", "in": [4]},
    ]
}
PLAIN = """
def make(device):
    w = [device.normal((8, 8), std=0.3).require_grad() for _ in range(3)]
    x = device.uniform((4, 8))

    def loss():
        h = x
        for a in w:
            h = layer(h, a)
        return h.sum()

    return loss


def layer(h, a):
    return (h @ a).tanh()
"""
"""The same program before and after somebody put its layers into regions."""

CHECKPOINTED = f"""
from ckptcli.autodiff.regions import checkpoint

{PLAIN}

layer = checkpoint(layer)
"""

WRONG = ["--workload", "graph:g.json", "-s", "balanced", "--perturb-replay", "float32"]
PIPED = [
    (["run", *WRONG, "--reps", "2"], 5),
    (["check", *WRONG], 5),
    (["run", "-n", "8", "-l", "3", "--reps", "2", "--fail-on", "recomputed > 0"], 3),
    (["compare", "before.json", "after.json", "--fail-on", "recomputed > 0"], 3),
    (["compare", "before.json", "after.json", "--fail-on", "recomputed > 0", "--json"], 3),
    (["run", "-n", "8", "-l", "3", "--reps", "2"], 0),
    (["rum"], 2),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("g.json").write_text(json.dumps(DIVISION))
    return tmp_path


def save_runs() -> None:
    for name, program in (("before", PLAIN), ("after", CHECKPOINTED)):
        Path("program.py").write_text(program)
        words = ["run", "--workload", "program.py:make", "-s", "none", "--reps", "2", "-q"]
        assert run_command([*words, "--export", f"{name}.json"]) == 0


@pytest.mark.sampled(4)
@pytest.mark.skipif(os.name != "posix", reason="a pipe of this kind")
@pytest.mark.parametrize(("words", "code"), PIPED, ids=lambda words: str(words)[:40])
def test_a_reader_that_leaves_changes_no_exit_code(
    folder: Path, words: list[str], code: int
) -> None:
    """Standard output and errors go to one pipe, whose reader left before the first line."""
    if "after.json" in words:
        save_runs()
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*CKPT, *words], stdout=writer, stderr=writer, timeout=120)
    finally:
        os.close(writer)
    assert done.returncode == code


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_the_first_line_of_both_streams_leaves_the_code_of_a_comparison(folder: Path) -> None:
    save_runs()
    line = (
        f'{{ "{sys.executable}" -m ckptcli compare before.json after.json '
        "--fail-on 'recomputed > 0' 2>&1; echo $? >code; } | head -1"
    )
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=120)
    assert len(done.stdout.splitlines()) == 1
    assert Path("code").read_text() == "3\n"


DIVIDING = """
def make(device):
    w = device.tensor([1.5, 2.5], "float64").require_grad()

    def loss():
        h = w
        for layer in device.layers(4):
            h = h.sin() / (h.cos() + 2.0)
        return (h * h).sum()

    return loss
"""


HALVING = """two = device.tensor([2.0, 4.0], "float64")

    def loss"""


def names_of(capsys: pytest.CaptureFixture[str]) -> dict[str, bool]:
    """Each strategy of the record, and whether it is the reference that was added."""
    data = json.loads(capsys.readouterr().out)
    return {entry["strategy"]: entry["reference"] for entry in data["strategies"]}


@pytest.mark.slow
def test_none_joins_whenever_it_is_not_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it a gradient that is wrong under each of two strategies is compared with nothing."""
    Path("p.py").write_text(DIVIDING)
    words = ["run", "--workload", "p.py:make", "-s", "remat", "-s", "sqrt", "--reps", "3", "--json"]
    wrong = [*words, "--perturb-replay", "float32"]
    assert run_command(wrong) == 5
    assert names_of(capsys) == {"none": True, "remat": False, "sqrt": False}
    assert run_command(words) == 0
    capsys.readouterr()
    assert run_command([*words, "-s", "none"]) == 0
    assert names_of(capsys) == {"remat": False, "sqrt": False, "none": False}


def test_without_none_the_first_is_the_reference_and_that_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("p.py").write_text(DIVIDING)
    words = ["run", "--workload", "p.py:make", "-s", "remat", "-s", "sqrt", "--reps", "3"]
    words += ["--no-reference", "--fail-on", "recomputed > 1000%"]
    assert run_command([*words, "--json"]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    remat, sqrt = data["strategies"]
    assert (remat["strategy"], remat["reference"], remat["ratios"]) == ("remat", True, None)
    assert sqrt["ratios"]["total"]["verdict"]
    note = (
        "`none` was not run: `remat` is the reference, and whether its own gradient is right was "
        "not looked at"
    )
    assert note in data["warnings"]
    assert f"warning: {note}" in captured.err
    assert run_command(words) == 0
    assert "reference" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("reciprocal", "reciprocal moved no gradient"),
        ("norm", "norm met no value that is computed again"),
        ("float32", None),
    ],
)
def test_a_fault_on_purpose_that_does_nothing_is_told_of_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str], fault: str, told: str | None
) -> None:
    """Divisors are powers of two, so that a reciprocal rounds to nothing else."""
    exact = DIVIDING.replace("h.sin() / (h.cos() + 2.0)", "(h.sin() / two).sin()").replace(
        "def loss", HALVING
    )
    Path("p.py").write_text(exact)
    words = ["run", "--workload", "p.py:make", "-s", "remat", "--reps", "1"]
    assert run_command([*words, "--perturb-replay", fault]) == (5 if told is None else 0)
    errors = capsys.readouterr().err
    if told is None:
        assert "moved no gradient" not in errors
        assert "met no value" not in errors
    else:
        assert f"warning: --perturb-replay {told}" in errors


@pytest.mark.parametrize("more", [["-s", "none"], ["-s", "balanced", "--no-reference"]])
def test_strict_with_nothing_to_decide_ends_with_4(
    folder: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    words = ["run", "-n", "8", "-l", "2", "--reps", "1", "-q", *more]
    assert run_command(words) == 0
    capsys.readouterr()
    assert run_command([*words, "--strict"]) == 4
    assert capsys.readouterr().err == (
        "undecided: --strict asks for a verdict, and no two times are compared\n"
    )
