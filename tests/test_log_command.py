"""`ckpt log`: all passes or none, one sink for all of them, and what it warns of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import CheckpointError
from ckptcli.profiling import log_pass, memory_needed

LEAF = {"op": "leaf", "req": True, "data": [1, 2, 3, 4]}
GOOD = {"ops": [LEAF, {"op": "sin", "in": [0]}]}
INFINITE = {"ops": [{**LEAF, "data": [1000, 1]}, {"op": "exp", "in": [0]}]}

Log = Callable[..., tuple[int, str, str]]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Log:
    """Run `ckpt log` in an empty directory: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, cases: list[dict[str, Any]] | None = None) -> tuple[int, str, str]:
        if cases is not None:
            Path("g.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases))
            arguments = ("--workload", "graph:g.jsonl", *arguments)
        code = run_command(["log", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize("times", [1, 2])
def test_without_append_the_file_has_every_pass_of_the_last_command(log: Log, times: int) -> None:
    Path("my.toml").write_text(
        '[autodiff.logger]\nlevel = "full"\nfile = "my.log"\nappend = false\n'
    )
    for _ in range(times):
        _, out, _ = log("-s", "none", "-s", "balanced", "--config", "my.toml")
    headings = [line for line in out.splitlines() if line.startswith("device = ")]
    assert headings == [
        f"device = Device<Autodiff {{ device: Numpy(Cpu), checkpointing: {title} }}>, "
        "n = 64, layers = 2"
        for title in ("Disabled", "Balanced")
    ]
    assert len(out.splitlines()) == 39 + len(headings)
    assert Path("my.log").read_text() == out


def test_with_append_the_file_has_every_pass(log: Log) -> None:
    Path("my.toml").write_text('[autodiff.logger]\nlevel = "basic"\nfile = "my.log"\n')
    _, first, _ = log("--config", "my.toml")
    _, second, _ = log("--config", "my.toml", cases=[GOOD, GOOD])
    assert Path("my.log").read_text() == first + second


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({**GOOD, "strategy": "nonee"}, "g.jsonl:2: unknown strategy `nonee`"),
        ({"ops": [{"op": "leaf", "data": [1]}]}, "g.jsonl:2: root 0 (`leaf`) is a constant"),
        ({**GOOD, "strategy": "sqrt"}, "strategy `sqrt` needs layers, and `graph = g.jsonl:2"),
    ],
)
def test_a_second_case_that_cannot_run_leaves_stdout_empty(
    log: Log, second: dict[str, Any], message: str
) -> None:
    code, out, err = log(cases=[GOOD, second])
    assert (code, out) == (2, "")
    assert err.startswith(f"Error: {message}")


def test_a_strategy_that_needs_layers_is_refused_on_a_graph(log: Log) -> None:
    assert log("-s", "sqrt", cases=[GOOD])[:2] == (2, "")
    assert log("-s", "sqrt")[0] == 0


def test_an_error_of_the_engine_names_the_case(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise CheckpointError("two states are left", "report it")

    monkeypatch.setattr(log_pass, "log_pass", broken)
    code, _, err = log(cases=[GOOD])
    assert code == 1
    message = "Error: graph = g.jsonl:1, ops = 2: two states are left\n\nhint: report it\n"
    assert err == message


def test_what_cannot_fit_is_refused_before_allocation(log: Log) -> None:
    code, out, err = log("--n", "1000000")
    assert (code, out) == (1, "")
    assert "n = 1000000, layers = 2 needs at least 29.1 TiB (32000000000000 bytes)" in err
    assert "hint: use a smaller --n, --batch or --layers, or --no-memory-check" in err


def test_force_runs_what_cannot_fit(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: 100)
    assert log()[:2] == (1, "")
    assert log(cases=[GOOD, INFINITE])[0] == 0
    code, out, _ = log("--no-memory-check")
    assert code == 0
    assert out


def test_a_loss_and_a_gradient_that_are_not_finite_are_said(log: Log) -> None:
    code, out, err = log("-s", "none", "--json", cases=[INFINITE])
    assert code == 0
    assert json.loads(out)["gradients"] == {"0": [None, 2.718281828459045]}
    loss, gradient = err.splitlines()
    assert loss.startswith("warning: none: the loss is inf: the figures are those of a program")
    assert gradient == (
        "warning: none: the gradient of `0` is not finite in 1 of 2 places; JSON has null there"
    )
    assert log("-q", cases=[INFINITE])[2] == ""
    assert log(cases=[GOOD])[2] == ""


def test_of_several_cases_a_warning_names_its_own(log: Log) -> None:
    _, _, err = log(cases=[GOOD, INFINITE])
    assert all(line.startswith("warning: case 1: balanced: ") for line in err.splitlines())
    assert len(err.splitlines()) == 2


def test_a_case_keeps_its_index_in_the_file(log: Log) -> None:
    log(cases=[GOOD, GOOD])
    _, out, _ = log("--workload", "graph:g.jsonl#1", "--json")
    assert json.loads(out)["case"] == 1
