"""`ckpt ops`: the table in words, and the page that shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ckptcli.autodiff.describe import descriptions
from ckptcli.autodiff.ops import DECLARATIONS, OPERATIONS
from ckptcli.cli.main import run_command

PAGE = Path(__file__).parent.parent / "docs" / "commands" / "ops.md"
EXAMPLES = re.findall(r"```console\n\$ ckpt (.*?)\n(.*?)```", PAGE.read_text(), flags=re.S)


@pytest.mark.parametrize(("arguments", "printed"), EXAMPLES, ids=[each[0] for each in EXAMPLES])
def test_the_page_shows_what_is_printed(
    capsys: pytest.CaptureFixture[str], arguments: str, printed: str
) -> None:
    assert run_command(arguments.split()) == 0
    assert capsys.readouterr().out == printed


def test_every_op_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["ops"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["op", "bound"]
    assert [line.split()[0] for line in lines] == sorted({*DECLARATIONS, *OPERATIONS})


@pytest.mark.parametrize(
    ("name", "bound", "needs", "keeps"),
    [
        ("add", "memory", (), ""),
        ("mul", "memory", ("lhs if rhs tracked", "rhs if lhs tracked"), ""),
        ("remainder", "memory", ("lhs if rhs tracked", "rhs"), ""),
        ("hypot", "compute", ("lhs", "rhs"), ""),
        ("atan2", "memory", ("y", "x"), ""),
        ("linear", "compute", ("x if weight tracked", "weight if x tracked"), ""),
        ("conv2d", "compute", ("x", "weight", "bias"), ""),
        ("prod", "compute", (), "input and output by value"),
        ("max_pool2d", "compute", ("x",), "the integer indices"),
        ("cat", "ambiguous", (), ""),
        ("detach", "leaf", (), ""),
        ("layer_norm", None, (), ""),
    ],
)
def test_what_an_op_asks(name: str, bound: str | None, needs: tuple[str, ...], keeps: str) -> None:
    op = descriptions()[name]
    assert (op.bound, op.needs, op.keeps) == (bound, needs, keeps)


def test_every_op_has_a_summary_that_spells_parameters_as_they_are() -> None:
    for name, op in descriptions().items():
        assert op.summary, name
        assert op.summary.split()[0] not in ("X", "Lhs", "Rhs", "Alpha", "E"), op.summary


def test_a_method_that_returns_several_tensors_is_described_as_it_is_called() -> None:
    assert descriptions()["rfft"].call == "rfft(x, dim)"


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["ops", "gather", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        "schema": "ckpt.ops/1",
        "ops": [
            {
                "name": "gather",
                "call": "gather(x, dim, indices)",
                "bound": "compute",
                "operands": ["x"],
                "arguments": ["dim", "indices"],
                "needs": [],
                "keeps": "the integer indices",
                "is_view": False,
                "summary": "The element at each index along `dim`, in the shape of `indices`.",
                "differs": "",
            }
        ],
    }


def test_an_unknown_name_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["ops", "sofmax"]) == 2
    assert "did you mean `softmax`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("div", "Burn's divisor's gradient squares the divisor: 1e-20 / 1e-23 gives -inf there"),
        ("softplus", "Burn's is inf at 100 and 0 at -20 in float32, here 100 and 2.06e-9; its"),
        ("prod", "Burn's gradient divides by each factor: [nan, 0, 0] for [0, 2, 3], here [6"),
        ("atan2", "nan at (1, inf), here 0."),
    ],
)
def test_an_op_says_where_it_differs_from_burn(name: str, told: str) -> None:
    assert told in descriptions()[name].differs


def test_an_op_that_differs_nowhere_says_nothing() -> None:
    assert {descriptions()[name].differs for name in ("mul", "matmul", "cumprod", "exp")} == {""}


def test_every_op_that_says_so_is_in_the_page_of_differences() -> None:
    page = (Path(__file__).parent.parent / "docs/differences-from-burn.md").read_text()
    named = [name for name, op in descriptions().items() if op.differs]
    assert len(named) > 25
    assert [name for name in named if f"`{name}`" not in page] == []
