"""`ckpt check --engine`: a strategy in another library proved or refuted, alone."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.check import Check
from ckptcli.measure.difference import BesideTheory, DirectionalDifference
from ckptcli.measure.row import Agreement
from ckptcli.measure.wrong_values import LayerValue
from ckptcli.verify.bits import farthest_difference
from ckptcli.verify.differences import differences_of
from tests.backend_kit import INSTALLED_ENGINES, NEEDS_JAX, NEEDS_TORCH

pytestmark = pytest.mark.thinned(3)

AGREES = Agreement(1.0, 0.0, 0.0, 1e-13, 1.0, 1e-12)
DIFFERS = replace(AGREES, gradient_relative=1e-4)
CHECK = Check("remat", "jax", gradients=1, agreement=AGREES, plain_agreement=AGREES)
MOVED = farthest_difference(np.array([1.0]), np.array([1.5]))
SMALL = ("-l", "3", "-n", "8")


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[Any]]:
    code = run_command(["check", *arguments, "--json", "-q"])
    programs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, [found for program in programs for found in program["checks"]]


# What speaks against a strategy.


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        (CHECK, True),
        (replace(CHECK, agreement=DIFFERS), False),
        (replace(CHECK, plain_agreement=DIFFERS), False),
        (replace(CHECK, plain_agreement=None), True),
        (replace(CHECK, theory=BesideTheory(0.71240001, 0.7124, 1e-12)), False),
        (replace(CHECK, theory=BesideTheory(0.71240001, 0.7124, 1e-6)), True),
        (replace(CHECK, differences=(DirectionalDifference(1.0, 1.1, 1e-10),)), False),
        (replace(CHECK, differences=(DirectionalDifference(1.0, 1.1, 0.1, (), "a kink"),)), True),
        (replace(CHECK, compared=2, wrong_values=(LayerValue(0, "s", MOVED),)), False),
        (Check("remat", "jax", "it knows no names"), None),
    ],
)
def test_what_speaks_against_it(found: Check, passed: bool | None) -> None:
    assert found.passed is passed


def test_where_two_gradients_lie_farthest_apart() -> None:
    one, other = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.1, 2.0], [3.0, 3.0]])
    assert farthest_difference(one, other).element == (1, 1)
    other[0, 1] = np.nan
    found = farthest_difference(one, other)
    assert (found.element, found.ulp) == ((0, 1), None)
    assert farthest_difference(one, other[0]).element == ()


def test_differences_of_any_loss_find_a_gradient_that_is_off() -> None:
    """sum(sin(a)) + sum(b^2), of which the one gradient is right and the other 1e-4 too large."""
    parameters = {"a": np.array([0.3, 1.2]), "b": np.array([[2.0]])}
    gradients = {"a": np.cos(parameters["a"]), "b": 2.0002 * parameters["b"]}

    def loss(at: Any) -> tuple[float, bytes]:
        return float(np.sin(at["a"]).sum() + (at["b"] ** 2).sum()), b""

    found = differences_of(parameters, gradients, loss)
    assert all(direction.is_usable for direction in found)
    assert {direction.parameters: direction.agrees for direction in found} == {
        ("a",): True,
        ("b",): False,
    }


# The command.


def test_an_engine_that_is_not_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command(["check", *SMALL, "--engine", "jacks"]) == 2
    assert "unknown engine `jacks`" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "jax", None)
    assert run_command(["check", *SMALL, "--engine", "jax"]) == 2
    assert "pip install 'ckptcli[jax]'" in capsys.readouterr().err


def test_ckpts_own_checks_have_the_keys_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    code, (found,) = checked(capsys, *SMALL, "--engine", "ckpt", "-s", "remat")
    assert (code, found["engine"], found["passed"]) == (0, "ckpt", True)
    assert (found["plain_agreement"], found["theory"], found["finding"]) == (None, None, None)
    assert found["compared"] == 6


@pytest.mark.slow
@pytest.mark.parametrize("engine", INSTALLED_ENGINES)
def test_what_is_right_passes(capsys: pytest.CaptureFixture[str], engine: str) -> None:
    strategies = ("-s", "none", "-s", "remat", "-s", "balanced")
    code, found = checked(capsys, *SMALL, *strategies, "--engine", engine)
    assert code == 0
    ours, theirs = found[:3], found[3:]
    assert [(row["engine"], row["strategy"]) for row in theirs] == [
        (engine, name) for name in ("none", "remat", "balanced")
    ]
    for own, row in zip(ours, theirs):
        assert own.keys() == row.keys()
        assert row["passed"] is True
        assert row["usable_directions"] == 3
        assert row["agreement"]["agrees"]
        assert (row["plain_agreement"] is None) == (row["strategy"] == "none")
        assert row["draws"] is None
        if engine == "torch":
            # p and s of each layer; in one region s, and h where the next product needs it.
            again = {"none": 0, "remat": 3 + 3, "balanced": 3 + 2}[row["strategy"]]
            assert (row["compared"], row["same_bits"], row["wrong_values"]) == (again, again, [])
            assert set(row["untold"]) == {"random draws"}
        else:
            assert (row["compared"], row["wrong_values"]) == (None, [])
            assert set(row["untold"]) == {"recomputed values", "random draws"}


@NEEDS_TORCH
@pytest.mark.slow
def test_what_has_no_counterpart_is_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*SMALL, "-s", "remat:names=p", "--engine", "torch")
    code, found = checked(capsys, *words)
    assert (code, found[-1]["passed"]) == (0, None)
    assert "knows no names" in found[-1]["reason"]
    assert checked(capsys, *words, "--strict")[0] == 4
    assert checked(capsys, *SMALL, "-s", "remat", "--engine", "torch", "--strict")[0] == 0


@pytest.fixture
def wrong_recomputation(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's sigmoid a little larger wherever a checkpoint computes it again."""
    import torch

    sigmoid = torch.sigmoid

    def unfaithful(p: torch.Tensor) -> torch.Tensor:
        again = torch._C._current_graph_task_id() != -1  # inside a backward pass
        return sigmoid(p) * (1.001 if again else 1.0)

    monkeypatch.setattr(torch, "sigmoid", unfaithful)


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.usefixtures("wrong_recomputation")
def test_a_checkpoint_that_changes_the_gradient_ends_with_5(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (*SMALL, "-s", "none", "-s", "remat", "--engine", "torch")
    code, (_, _, plain, remat) = checked(capsys, *words)
    assert code == 5
    assert (plain["passed"], remat["passed"]) == (True, False)
    assert plain["finding"] is None
    assert remat["finding"] == "the checkpoint changed it: `torch none` agrees with ckpt"
    assert [name for name, _ in remat["wrong_gradients"]] == ["w0", "w1", "w2"]
    assert any(d["reason"] is None and not _agrees(d) for d in remat["differences"])
    wrong = [(value["layer"], value["name"]) for value in remat["wrong_values"]]
    assert sorted(wrong) == [(0, "s"), (1, "s"), (2, "s")]
    assert (remat["compared"], remat["same_bits"]) == (6, 3)
    assert run_command(["check", *words, "-q"]) == 5
    text = capsys.readouterr().out
    assert "torch none: passed" in text
    assert "torch remat: FAILED" in text
    assert "finding             the checkpoint changed it" in text
    assert "recomputed values   3 of 6 are the forward's, bit for bit" in text
    assert "layer 2, s: element" in text


def _agrees(direction: dict[str, Any]) -> bool:
    return DirectionalDifference(
        direction["gradient"], direction["difference"], direction["scatter"]
    ).agrees


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["remat", "remat:every=4"])
def test_the_trg_in_jax_is_proved_or_refuted(
    capsys: pytest.CaptureFixture[str], strategy: str
) -> None:
    """Whether signs turn is up to XLA and LAPACK; the verdict has to fit the number in any case."""
    words = ("--workload", "trg", "--steps", "4", "--beta", "0.44", "-s", strategy)
    code, (own, found) = checked(capsys, *words, "--engine", "jax")
    assert own["passed"]
    agrees = found["agreement"]["agrees"]
    assert agrees == found["plain_agreement"]["agrees"]
    assert found["passed"] == agrees
    assert code == (0 if agrees else 5)
    assert found["theory"]["agrees"] == agrees
    (difference,) = found["differences"]
    assert _agrees(difference) == agrees
    if not agrees:
        assert found["finding"] == (
            "the checkpoint changed it: `jax none` agrees with ckpt, the exact value and the "
            "finite difference"
        )
