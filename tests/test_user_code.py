"""`FILE.py:NAME`: strategies and policies of the user's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.checkpoint.user_code import load_name, refused_arguments, running
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.workloads.silu import SiluWorkload

PROGRAM = '''
from ckptcli.checkpoint.strategies.base import Strategy

def products(value):
    return value.op == "matmul"

class Everything(Strategy):
    """Recompute what only has tracked operands, products too."""
    keyword = "everything"
    summary = "recompute all of it"
    label = "Everything"
    def recomputes(self, node):
        return node.mask == node.op.all_tracked

ready = Everything()
number = 3
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("name", ["Everything", "ready"])
def test_a_strategy_of_ones_own(file: Path, name: str) -> None:
    strategy = parse_strategy(f"{file}:{name}")
    measured = memory_pass(SiluWorkload(3, 8), device(), strategy)
    reference = memory_pass(SiluWorkload(3, 8), device(), parse_strategy("none"))
    assert measured.outcome.recomputed_by_op["matmul"] == 2
    assert measured.outcome.grad_sha256 == reference.outcome.grad_sha256


def test_a_policy_of_ones_own(file: Path) -> None:
    strategy = parse_strategy(f"remat:every=3,policy={file}:products")
    measured = memory_pass(SiluWorkload(3, 8), device(), strategy)
    assert "matmul" not in measured.outcome.recomputed_by_op
    assert measured.memory.saved_tensors == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{file}:Everythin", "did you mean"),
        ("{file}:number", "is not a strategy"),
        ("remat:policy={file}:number", "is not a function"),
        ("absent.py:x", "`absent.py` cannot be read: No such file"),
    ],
)
def test_what_is_wrong_is_named(file: Path, text: str, message: str) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=message):
        parse_strategy(text.format(file=file))


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ('name = "everything"', "keyword"),
        ('keyword = "everything"', "label"),
        ('keyword = "everything"; label = 3', "label"),
        ('keyword = label = "a"; name = property(lambda self: self.nothing)', "name"),
    ],
)
def test_a_strategy_that_lacks_something_is_refused_when_it_is_loaded(
    tmp_path: Path, body: str, missing: str
) -> None:
    path = tmp_path / "mine.py"
    base = "from ckptcli.checkpoint.strategies.base import Strategy\n"
    path.write_text(f"{base}class Everything(Strategy): {body}\n")
    with pytest.raises(UsageError, match=f":Everything` has no `{missing}`"):
        parse_strategy(f"{path}:Everything")


def test_a_file_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match=r"bad.py:1 \(`1 / 0`\): ZeroDivisionError"):
        parse_strategy(f"{tmp_path / 'bad.py'}:x")


def test_arguments_that_a_function_does_not_take_are_said() -> None:
    """What a function written in C takes is not always known: it is not refused then."""
    assert refused_arguments(lambda output, batch: output, 1, 2) is None
    assert refused_arguments(lambda output: output, 1, 2) == "too many positional arguments"
    assert refused_arguments(lambda width: width) == "missing a required argument: 'width'"
    assert refused_arguments(dict, 1, 2) is None
    assert refused_arguments("adamw") is None  # type: ignore[arg-type]  # as in a user's file


SCRIPT = """
import argparse
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=3)
read = parser.parse_args().width

def later():
    return parser.parse_args().width, sys.argv
"""


def test_a_script_does_not_read_the_command_line_of_ckpt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees its own name alone, as `python FILE.py` gives it, when loaded and when called."""
    given = ["ckpt", "run", "--module", "train.py:make"]
    monkeypatch.setattr(sys, "argv", given)
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    assert load_name(f"{path}:read") == 3
    later = load_name(f"{path}:later")
    assert callable(later)
    with running(f"{path}:later", ""):
        assert later() == (3, [str(path)])
    assert sys.argv is given


def test_a_script_that_needs_arguments_is_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("default=3", "required=True"))
    with pytest.raises(UsageError) as raised:
        load_name(f"{path}:read")
    assert "SystemExit" in raised.value.message
    assert 'if __name__ == "__main__":' in str(raised.value.hint)
