"""A finite difference at a kink, or of too few digits, concludes nothing, whatever the gradient is.

A right gradient is then never called wrong: not where a kink is hit exactly, where the two central
steps agree on the mean of two derivatives, and not where a step goes over one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.measure.check import Check
from ckptcli.verify.check import check
from ckptcli.verify.differences import DROWNED, STEPS
from ckptcli.verify.rounding import rounding_of
from tests.program_kit import Opener

KINK_PROGRAM = """
def make(device):
    x = device.tensor([1.0], "float64").require_grad()
    return lambda: (x - {kink}).{op}()
"""

BRANCH = "a branch changes along it"
SIDES = "the derivatives to its left and right differ"
SUBNORMAL = "the derivative is too close to the subnormal numbers"


def checked(opened: Opener, kink: float, op: str = "relu") -> Check:
    workload = opened(KINK_PROGRAM.format(kink=1.0 + kink, op=op))
    return check(workload, parse_strategy("none"), workload)


@pytest.mark.parametrize("kink", [0.0, 1e-8, 1e-5, -1e-5, 1.5e-5])
def test_a_kink_closer_than_the_smallest_step_is_unusable_and_fails_nothing(
    opened: Opener, kink: float
) -> None:
    found = checked(opened, kink)
    (difference,) = found.differences
    assert difference.reason == BRANCH
    assert difference.gradient == float(kink < 0.0)
    assert (found.usable_directions, found.unusable_directions) == (0, 1)
    assert found.passed


@pytest.mark.parametrize("kink", [1e-4, -1e-4, 1.9e-3, 1e-2])
def test_a_smaller_step_stays_on_this_side_of_a_kink(opened: Opener, kink: float) -> None:
    assert kink > 2.0 * STEPS[-1] or kink < -2.0 * STEPS[-1]
    (difference,) = checked(opened, kink).differences
    assert difference.is_usable
    assert difference.agrees
    assert difference.difference == pytest.approx(float(kink < 0.0), abs=1e-9)


def graph(tmp_path: Path, *ops: dict[str, Any]) -> str:
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"ops": ops}))
    return f"graph:{path}"


def leaf(*data: float, **more: object) -> dict[str, Any]:
    return {"op": "leaf", "req": True, "data": data, **more}


def op(name: str, *inputs: int, **arguments: object) -> dict[str, Any]:
    return {"op": name, "in": inputs, **arguments}


SUM = op("sum", 1)
UNUSABLE = {
    "relu at 0": (BRANCH, leaf(0.5, -1.25, 0.0), op("relu", 0), SUM),
    "abs at 0": (BRANCH, leaf(0.0, 1.0), op("abs", 0), SUM),
    "clamp at its limit": (BRANCH, leaf(1.0, 2.0), op("clamp_max", 0, c=2.0), SUM),
    "a tied maximum": (BRANCH, leaf(1.0, 1.0), op("max", 0)),
    "a tied sort": (BRANCH, leaf(1.0, 1.0), op("sort", 0, dim=0), op("slice", 1, ranges=[[0, 1]])),
    "a tied cummax": (BRANCH, leaf(1.0, 1.0), op("cummax", 0, dim=0), SUM),
    "hypot at 0": (SIDES, leaf(0.0), leaf(0.0), op("hypot", 0, 1)),
    "a subnormal gradient": (SUBNORMAL, leaf(1.0, 2.0), op("mul_scalar", 0, c=2e-314), SUM),
    "a root at 0": ("the loss is not finite along it", leaf(0.0), op("sqrt", 0)),
    "a constant that drowns it": (DROWNED, leaf(1.0), op("add_scalar", 0, c=1e12)),
    "a constant that is gone again": (
        DROWNED,
        leaf(1.0, 2.0),
        *(op("add_scalar", 0, c=1e20), op("sub_scalar", 1, c=1e20), op("sum", 2)),
    ),
    "one that is gone again but for digits": (
        DROWNED,
        leaf(1.0, 2.0),
        *(op("add_scalar", 0, c=1e12), op("sub_scalar", 1, c=1e12), op("sum", 2)),
    ),
    "an exponential that is rolled up": (
        DROWNED,
        leaf(3.5, 3.6),
        *(op("square", 0), op("exp", 1), op("square", 2), op("sin", 3), op("sum", 4)),
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_direction_that_is_unusable_says_why_and_where_all_are_strict_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    reason, *ops = UNUSABLE[name]
    words = ["check", "--workload", graph(tmp_path, *ops)]
    assert run_command(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"unusable, {reason}" in out
    assert "unusable: whether the gradient is that of the loss is not decided here" in out
    assert run_command([*words, "--strict"]) == 4
    capsys.readouterr()
    assert run_command([*words, "--strict", "--json"]) == 4
    (entry,) = json.loads(capsys.readouterr().out)["checks"]
    assert entry["usable_directions"] == 0
    assert entry["unusable_directions"] == len(entry["differences"]) > 0
    assert {difference["reason"] for difference in entry["differences"]} == {reason}


USABLE = {
    "sizes of all kinds beside a kink": (leaf(100, 1e-3, 2e-3, -1e-3), op("relu", 0), SUM),
    "a saturated element": (leaf(1e6, 0.5, 2.0), op("sigmoid", 0), SUM),
    "an infinite element": (leaf(float("inf"), 0.5, 2.0), op("sigmoid", 0), SUM),
    "log_sigmoid at 0": (leaf(0.0, 1.0), op("log_sigmoid", 0), SUM),
    "a stationary point": (leaf(0.0, 0.0), op("square", 0), SUM),
}


@pytest.mark.parametrize("name", USABLE)
def test_what_is_smooth_there_is_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words = ["check", "--workload", graph(tmp_path, *USABLE[name]), "--strict", "--json"]
    assert run_command(words) == 0
    (entry,) = json.loads(capsys.readouterr().out)["checks"]
    assert entry["unusable_directions"] == 0
    assert entry["usable_directions"] == 3


def test_a_bias_of_zero_beside_padded_rows_spoils_no_other_parameter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a padded row the relu is at 0 exactly, and each move of the bias goes over that."""
    ops = (
        {"op": "leaf", "data": [1.0, 2.0, 0.0, 0.0, 3.0, -1.0], "shape": [3, 2]},
        leaf(0.3, -0.2, 0.5, 0.7, shape=[2, 2]),
        leaf(0.0, 0.0, shape=[1, 2]),
        *(op("matmul", 0, 1), op("add", 3, 2), op("relu", 4), op("sum", 5)),
    )
    assert run_command(["check", "--workload", graph(tmp_path, *ops), "--strict", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["checks"]
    usable = {tuple(d["parameters"]): d["reason"] is None for d in entry["differences"]}
    assert usable == {("1",): True, ("2",): False}


def test_rounding_is_drawn_of_fresh_arrays_alone() -> None:
    """The loss moves by as much as its largest value's last places, and nothing given is moved."""
    given = np.array([1.0, 2.0])

    def loss_on(backend: Backend) -> tuple[float, bytes]:
        xp = backend.namespace
        far = xp.add(given, 1e20)
        assert xp.reshape(given, (2, 1)).base is given
        return float(xp.sum_all(xp.subtract(far, 1e20))[0]), b""

    moved = rounding_of(loss_on)
    assert 1e2 < moved < 1e6
    assert rounding_of(loss_on) == moved
    assert given.tolist() == [1.0, 2.0]


def test_rounding_that_takes_another_branch_says_nothing() -> None:
    branch = iter(range(9))
    assert rounding_of(lambda backend: (next(branch) * 1.0, bytes([next(branch)]))) == 0.0
