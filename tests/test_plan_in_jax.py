"""`ckpt plan --engine jax`: a program's plan by names, and what of it is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.planning.tape.held_names import HeldNames
from tests.backend_kit import NEEDS_JAX

SMALL = ("plan", "-q", "--layers", "4", "--n", "16", "--engine", "jax")


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command([*SMALL, "--json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_what_names_cannot_say_is_lost() -> None:
    held = HeldNames(["p"], {"h": (2, 5)}, unnamed=1, repeated=3, moved=2)
    assert list(held.lost()) == [
        "the plan holds 2 of 5 values `h`, a policy all or none",
        "1 value that the plan holds without a name",
        "3 values that the plan computes again more than once",
        "2 values that the plan moves to the host",
    ]
    assert list(HeldNames(["p"], {}, 0, 0).lost()) == []


@NEEDS_JAX
@pytest.mark.slow
def test_a_plan_ends_with_the_policy_and_what_it_takes_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import jax

    none = planned(capsys, "--budget", "1MB")["in_jax"]
    assert (none["strategy"], none["code"], none["lost"]) == ("none", "", [])
    assert none["peak_bytes"] == none["none_peak_bytes"]
    plan = planned(capsys, "--budget", "11KiB")
    there = plan["in_jax"]
    row_of = ["run", "-q", "--json", "--layers", "4", "--n", "16", "--reps", "1", "--engine", "jax"]
    assert run_command([*row_of, "-s", "none", "-s", there["strategy"]]) == 0
    rows = json.loads(capsys.readouterr().out)["strategies"]
    (row,) = (r for r in rows if (r["engine"], r["strategy"]) == ("jax", there["strategy"]))
    assert row["saved_bytes"] == there["residual_bytes"]
    names = {"jax": jax, "layer": lambda h, w: h @ w}
    exec(there["code"], names)
    assert callable(names["layer"])
    assert run_command([*SMALL, "--budget", "11KiB"]) == 0
    screen = capsys.readouterr().out
    assert screen.endswith(there["code"])
    assert f"in JAX {there['strategy']} comes closest" in screen


def test_another_engine_or_workload_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("plan", "--n", "16", "--budget", "1MB", "--engine", "torch")
    assert run_command(words) == 2
    assert "--engine torch needs --module here" in capsys.readouterr().err
