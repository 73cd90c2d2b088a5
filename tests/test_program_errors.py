"""What is said of a program of the user's own that fails, or is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcli import device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.checkpoint.user_code import load_name
from ckptcli.cli.main import run_command
from ckptcli.errors import (
    CkptError,
    OutOfMemoryError,
    ProgramError,
    UnknownNameError,
    UsageError,
)
from ckptcli.options.workload import WorkloadOptions
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.workloads.registry import open_workloads
from tests.program_kit import Command, Opener, program_that

FAILURES = {
    "an op": ("return w @ w", "mine.py:4 (`return w @ w`): `matmul` cannot take shape [1, 2]"),
    "python": (
        "return w * (1 / 0)",
        "mine.py:4 (`return w * (1 / 0)`): ZeroDivisionError: division by zero",
    ),
    "a raise": (
        "raise ValueError('no\\nmore')",
        "(`raise ValueError('no\\nmore')`): ValueError: no",
    ),
    "exit": ("import sys\nsys.exit(3)", "mine.py:5 (`sys.exit(3)`): SystemExit: 3"),
    "not an Exception": ("raise GeneratorExit", "mine.py:4 (`raise GeneratorExit`): GeneratorExit"),
    "no text": ("assert False", "mine.py:4 (`assert False`): AssertionError"),
    "recursion": ("return loss()", "mine.py:4 (`return loss()`): RecursionError: maximum"),
    "in a library": (
        "import json\njson.loads('{')",
        "mine.py:5 (`json.loads('{')`): JSONDecodeError",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
@pytest.mark.parametrize("command", ["log", "check", "saved", "run"])
def test_a_failure_names_the_users_line(told: Command, case: str, command: str) -> None:
    body, message = FAILURES[case]
    code, out, err = told(program_that(body), command)
    assert (code, out) == (1, "")
    assert err.startswith("Error: `mine.py:make` failed at ")
    assert message in err
    assert err.count("\n") == (3 if "hint" in err else 1)


def test_a_failure_before_the_loss_names_its_line_too(told: Command) -> None:
    code, _, err = told("def make(device):\n    return device.tensor('x')\n")
    assert code == 1
    assert "failed at mine.py:2 (`return device.tensor('x')`): " in err


def test_a_failure_in_a_module_beside_it_names_that(
    told: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "a_helper_that_fails.py").write_text("def helper(w):\n    return w[0]['x']\n")
    program = "from a_helper_that_fails import helper\n" + program_that("return helper(w)")
    code, _, err = told(program)
    assert code == 1
    assert "a_helper_that_fails.py:2 (`return w[0]['x']`): " in err


WRONG_USE = {
    "no function": ("make = 3", "`mine.py:make` is a int, not a function", "takes the device"),
    "no argument": (
        "def make(): pass",
        "`mine.py:make` cannot be called: too many positional arguments",
        "takes the device",
    ),
    "nothing returned": (
        "def make(device): pass",
        "what `mine.py:make` returns is None, not a function",
        "takes no arguments",
    ),
    "a loss with an argument": (
        "def make(device): return lambda x: x",
        "what `mine.py:make` returns cannot be called: missing a required argument: 'x'",
        "takes no arguments",
    ),
    "no tensor": (program_that("return 3.0"), "returned a float", "return a tensor"),
    "two tensors": (program_that("return w, w"), "returned a tuple", "return a tensor"),
    "another device": (
        program_that("from ckptcli import device as d\nreturn d().autodiff().tensor([1.0])"),
        "a tensor of another device, Device<Autodiff",
        "on the device that the function gets",
    ),
    "no parameter": (
        "def make(device):\n    x = device.tensor([1.0])\n    return lambda: x * x",
        "has no parameter",
        "call `require_grad()`",
    ),
    "a constant": (
        program_that("return device.tensor([1.0])"),
        "that no parameter leads to",
        "computed from the parameters",
    ),
    "computed outside": (
        "def make(device):\n"
        "    w = device.tensor([1.0]).require_grad()\n"
        "    v = w * w\n"
        "    return lambda: v * w",
        "uses a tensor that the function computed from a parameter",
        "inside the loss",
    ),
    "backward inside": (
        program_that("l = (w * w).sum()\nl.backward()\nreturn l"),
        "calls backward() itself",
        "return the loss",
    ),
    "syntax": (
        "def make(device:\n    pass",
        "`mine.py` cannot be loaded at mine.py:1 (`def make(device:`): SyntaxError: '(' was never",
        "",
    ),
    "loading fails": ("x = 1 / 0", "`mine.py` cannot be loaded at mine.py:1 (`x = 1 / 0`)", ""),
    "loading exits": ("raise SystemExit", "cannot be loaded at mine.py:1", ""),
    "a name that is not there": (
        "def mak(device): pass",
        "unknown name in `mine.py`: `make`",
        "mak",
    ),
}


@pytest.mark.parametrize("case", WRONG_USE)
def test_a_wrong_program_is_a_wrong_command_line(told: Command, case: str) -> None:
    program, message, hint = WRONG_USE[case]
    code, out, err = told(program)
    assert (code, out) == (2, "")
    assert message in err
    assert hint in err.partition("hint: ")[2]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("absent.py:make", UsageError, "`absent.py` cannot be read: No such file"),
        ("absent.py", UsageError, r"`absent.py` names no function; write `absent.py:MAKE`"),
        ("program", UsageError, "write `FILE.py:MAKE`"),
        ("absent.pie:make", UnknownNameError, "unknown workload `absent.pie`"),
    ],
)
def test_what_is_not_there_is_named(text: str, error: type[CkptError], message: str) -> None:
    with pytest.raises(error, match=message):
        open_workloads(text, WorkloadOptions())


def test_what_does_not_fit_in_memory(opened: Opener) -> None:
    program = "import numpy\n" + program_that("return numpy.empty(2**50)")
    with pytest.raises(OutOfMemoryError, match=r"does not fit in memory at .*mine.py:5 ") as told:
        opened(program)
    assert told.value.hint == "use smaller tensors in the program"


def test_operands_of_two_dtypes_are_told(told: Command) -> None:
    code, _, err = told(program_that("return w * device.tensor([1.0], 'float64')"), "saved")
    assert code == 1
    assert "mine.py:4 (`return w * device.tensor([1.0], 'float64')`): `mul` got operands of" in err


def test_an_error_of_one_strategy_alone_is_told_too(opened: Opener) -> None:
    """What the first run does not meet."""
    program = """
def make(device):
    w = device.tensor([1.0]).require_grad()
    def loss():
        if device.strategy.name == "balanced":
            raise ValueError("not me")
        return w * w
    return loss
"""
    workload = opened(program)
    with pytest.raises(ProgramError, match="ValueError: not me"):
        memory_pass(workload, device(), parse_strategy("balanced"))


def test_names_that_a_file_imports_are_not_offered(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import math\nimport os.path as path\nmake = build = None\n")
    with pytest.raises(UnknownNameError) as refused:
        load_name(f"{path}:zzzz")
    assert refused.value.hint == "known: build, make"


def test_a_file_without_its_suffix_is_asked_after(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("")
    for text, hint in [
        ("mine:make", "did you mean `mine.py:make`?"),
        ("yours:make", "known: FILE.py:MAKE, chain, graph:FILE, silu, trg"),
        ("grap", "did you mean `graph:FILE`?"),
        ("trk", "did you mean `trg`?"),
    ]:
        assert run_command(["log", "--workload", text]) == 2
        assert f"hint: {hint}" in capsys.readouterr().err
