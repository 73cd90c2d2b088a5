"""One record of a check: one rule, one order of lines, the same keys whatever was checked."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli.measure.check import Check, CheckedProgram, WrongGradient, check_object
from ckptcli.measure.difference import BesideTheory, Difference, DirectionalDifference
from ckptcli.measure.fields import keys_of
from ckptcli.measure.module_check import Moved, Place
from ckptcli.measure.row import Agreement
from ckptcli.measure.wrong_values import EquationValue, LayerValue, NodeValue, OpValue
from ckptcli.peers.agreement import wrong_gradient
from ckptcli.report.check_lines import SHOWN_GRADIENTS, check_lines

MOVED = Difference((0,), 1.0, 1.5, 4.0)
NEAR = Agreement(1.0, 0.0, 0.0, 1e-7, 1.0, 1e-5, "torch none")
FAR = replace(NEAR, gradient_relative=1e-3)
WRONG = WrongGradient("w", MOVED, MOVED, 0.5)
USABLE = DirectionalDifference(1.0, 1.0, 1e-9, ("w",))
PLACE = Place(("l.0",), 1, "l.0.f", "mv", 0, "net.py:7", "")
OWN = Check("remat", gradients=2, by_bits=True, compared=3, same_bits=3, draws=(0, 0))


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        (OWN, True),
        (replace(OWN, gradients_apart=[WRONG]), False),
        (replace(OWN, gradients_apart=[WRONG], plain_agreement=NEAR), True),
        (replace(OWN, gradients_apart=[WRONG], plain_agreement=FAR), False),
        (replace(OWN, plain_agreement=NEAR, agreement=FAR), False),
        (replace(OWN, plain_agreement=NEAR, op_by_op=FAR), False),
        (replace(OWN, plain_agreement=replace(NEAR, loss_relative=math.nan)), False),
        (replace(OWN, theory=BesideTheory(1.1, 1.0, 0.01)), False),
        (replace(OWN, wrong_values=[LayerValue(0, "s", MOVED)]), False),
        (replace(OWN, draws=(1, 0)), False),
        (replace(OWN, differences=[replace(USABLE, difference=1.1)]), False),
        (replace(OWN, differences=[replace(USABLE, difference=1.1, reason="a kink")]), True),
        (replace(OWN, reason="it has no names"), None),
    ],
)
def test_what_speaks_against_a_strategy(found: Check, passed: bool | None) -> None:
    assert found.passed is passed


@pytest.mark.parametrize(
    ("changes", "is_decided"),
    [
        ({}, True),
        ({"differences": [USABLE, replace(USABLE, reason="a kink")]}, True),
        ({"differences": [replace(USABLE, reason="a kink")]}, False),
        ({"why_no_differences": "the program detaches values"}, False),
        ({"reason": "it has no names"}, False),
    ],
)
def test_a_check_is_decided_where_a_difference_belongs_to_it_and_can_be_used(
    changes: dict[str, Any], is_decided: bool
) -> None:
    assert replace(OWN, **changes).is_decided is is_decided


def test_lines_stand_in_one_order_each_under_its_label() -> None:
    value = EquationValue("div", "a.py:3:4 (f)", "a.py:3", "f", 1, (0,), 1.0, 1.5, 4.0, 0.5)
    whole = Check(
        "remat",
        counterpart="one region",
        gradients=2,
        by_bits=True,
        spread=1e-7,
        gradients_apart=[WRONG],
        plain_agreement=FAR,
        unused=["a"],
        not_compared=["b"],
        not_finite=["c"],
        theory=BesideTheory(1.1, 1.0, 0.01),
        differences=[USABLE],
        compared=3,
        same_bits=2,
        wrong_values=[value, OpValue(PLACE, 0, MOVED)],
        other_ops=[PLACE],
        draws=(1, 0),
        state=[Moved("buffer", "u", [("l.0",)], True, False, False, None)],
        untold={"hidden": "nobody says"},
        finding="the checkpoint changed it",
    )
    lines = list(check_lines(whole))
    assert [line[:20].strip() for line in lines if line[:20].strip()] == [
        "what it is",
        "run-to-run spread",
        "gradients",
        "no gradient",
        "not compared",
        "not finite",
        "exact value",
        "finite differences",
        "recomputed values",
        "first to differ",
        "other ops",
        "random draws",
        "state",
        "hidden",
        "finding",
    ]
    assert list(check_lines(replace(whole, reason="it has no names"))) == [
        "n/a                 it has no names"
    ]


def test_where_runs_differ_the_measure_is_their_spread() -> None:
    found = replace(OWN, by_bits=False, spread=2e-7, same_bits=None, gradients_apart=[WRONG])
    lines = [line for line in check_lines(found) if line[:1] != " "]
    assert lines[:3] == [
        "run-to-run spread   two passes of `none` lie 2.0e-07 apart: this library is not "
        "deterministic",
        "gradients           1 of 2 is `none`'s, within the run-to-run spread",
        "recomputed values   3 of 3 are the forward's, within the run-to-run spread",
    ]
    assert not found.passed


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"checkpoints": 0}, "none: no checkpoint was made"),
        ({"checkpoints": 2, "compared": 0}, "none: 2 checkpoints had no op to run again"),
        ({"checkpoints": 1}, "3 of 3 in 1 checkpoint are the forward's, bit for bit"),
        ({"sites": 0}, "none: no equation is inside a checkpoint that is looked into"),
    ],
)
def test_what_was_computed_again_is_told_in_words(changes: dict[str, Any], line: str) -> None:
    assert f"recomputed values   {line}" in list(check_lines(replace(OWN, **changes)))


def test_a_part_is_told_of_once_and_the_rest_is_counted() -> None:
    same = [OpValue(replace(PLACE, index=index), 0, MOVED) for index in range(3)]
    others = [OpValue(replace(PLACE, block=(f"l.{k}",)), 0, None) for k in range(1, 8)]
    lines = list(check_lines(replace(OWN, wrong_values=[*same, *others])))
    shown = [line for line in lines if "block `" in line]
    assert shown[0].startswith("first to differ     block `l.0`, in `l.0.f`, op 0 (aten.mv)")
    assert [line.count("l.0.f") for line in shown] == [1] * 5
    assert "                    and 3 more" in lines


@pytest.mark.parametrize("position", [0, 5, 19])
def test_of_many_gradients_the_worst_is_shown(position: int) -> None:
    apart = [replace(WRONG, parameter=f"w{k}") for k in range(20)]
    apart[position] = replace(apart[position], relative=0.9)
    lines = list(check_lines(replace(OWN, gradients=20, gradients_apart=apart)))
    shown = [line for line in lines if "element [0]" in line]
    assert len(shown) == SHOWN_GRADIENTS
    assert [line.strip().split(":")[:2] for line in shown if "worst" in line] == [
        ["worst", f" w{position}"]
    ]
    assert "                    and 12 more, which --json lists" in lines


def test_the_data_of_every_value_has_its_difference() -> None:
    values = [
        NodeValue(7, "exp", "net.py:3", MOVED, 1, "layer 1"),
        LayerValue(0, "s", MOVED),
        OpValue(PLACE, 0, MOVED),
        EquationValue("div", "a.py:3:4 (f)", "a.py:3", "f", 1, (0,), 1.0, 1.5, 4.0, math.inf),
    ]
    program = CheckedProgram("net.py:make", [replace(OWN, wrong_values=values)], "module")
    data = check_object(program)
    assert (data["workload"], data["module"]) == ("net.py:make", "net.py:make")
    told = data["checks"][0]["wrong_values"]
    expected = {"element": (0,), "expected": 1.0, "found": 1.5, "ulp": 4.0}
    assert [{**value["difference"], "element": (0,)} for value in told] == [expected] * 4
    assert (told[2]["block"], told[2]["index"]) == (["l.0"], 0)
    assert told[3]["apart"] is None
    assert data["warnings"] == ["checks[0].wrong_values[3].apart is inf, printed as null"]


def test_the_page_names_every_key() -> None:
    page = (Path(__file__).parents[1] / "docs" / "commands" / "check.md").read_text()
    values = (NodeValue, LayerValue, OpValue, EquationValue)
    keys = {key for kind in (Check, WrongGradient, DirectionalDifference) for key in keys_of(kind)}
    keys |= {key for kind in values for key in keys_of(kind)}
    assert {key for key in keys if f"`{key}`" not in page} == set()


def test_a_wrong_gradient_has_its_first_element_and_its_worst() -> None:
    found = wrong_gradient("w", np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.5, 2.0]), "l.0")
    assert (found.first.element, found.worst.element, found.relative) == ((1,), (2,), 0.5)
    shorter = wrong_gradient("w", np.ones(3), np.ones(2))
    assert (shorter.first, shorter.relative) == (shorter.worst, math.inf)
