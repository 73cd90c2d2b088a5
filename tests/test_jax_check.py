"""`ckpt check --function FILE.py:MAKE`: what proves a checkpoint wrong, and finds the place."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.check import Check, CheckedProgram, check_object
from ckptcli.measure.difference import DirectionalDifference
from ckptcli.measure.function_check import Compiled
from ckptcli.measure.row import Agreement
from ckptcli.measure.wrong_values import EquationValue
from ckptcli.report.check_lines import check_lines
from tests.backend_kit import NEEDS_JAX
from tests.jax_functions import EXAMPLES, NEEDS_FLAX, file as file, line_of

pytestmark = pytest.mark.thinned(3)

CKPT = [sys.executable, "-m", "ckptcli"]
TRG = Path(__file__).with_name("jax_trg_function.py")

NEAR = Agreement(1.0, 0.0, 0.0, 1e-7, 1.0, 1e-5, "none")
FAR = replace(NEAR, gradient_relative=1e-3)
ALONG = DirectionalDifference(1.0, 1.0, 1e-9, ("w",))
VALUE = EquationValue("div", "a.py:3:4 (f)", "a.py:3", "f", 1, (0, 1), 1.0, 1.5, 4.0, 0.5)
GOOD = Check(
    "own",
    "jax",
    gradients=1,
    agreement=NEAR,
    plain_agreement=NEAR,
    op_by_op=NEAR,
    sites=3,
    compared=3,
    differences=(ALONG,),
)


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({}, True),
        ({"agreement": FAR}, False),
        ({"op_by_op": FAR}, False),
        ({"wrong_values": (VALUE,)}, False),
        ({"differences": (replace(ALONG, difference=1.1),)}, False),
        ({"differences": (replace(ALONG, difference=1.1, reason="a kink"),)}, True),
        ({"reason": "no layers"}, None),
    ],
)
def test_what_passes(changes: dict[str, Any], passed: bool | None) -> None:
    found = replace(GOOD, **changes)
    assert found.passed is passed
    assert check_object(CheckedProgram("f", [found], "function"))["checks"][0]["passed"] is passed


def test_lines_name_the_first_value_and_where_it_grows() -> None:
    far = replace(VALUE, primitive="svd", apart=50.0)
    wrong = replace(GOOD, plain_agreement=FAR, compiled=Compiled(6, VALUE, far, False))
    text = "\n".join(check_lines(wrong))
    assert "`div` at a.py:3:4 (f), checkpoint 1: element [0, 1]: 1.0 became 1.5 (4 ulp)" in text
    assert "looking at it changed what the compiler made" in text
    assert "from there it grows: `svd`" in text
    assert "no value was seen to differ" in "\n".join(
        check_lines(replace(wrong, compiled=Compiled(3, None, None, False)))
    )


def checked(
    capsys: pytest.CaptureFixture[str], function: str, *arguments: str, code: int = 0
) -> dict[str, Any]:
    """The first check of a command's JSON."""
    assert run_command(["check", "--function", function, "--json", "-q", *arguments]) == code
    data = json.loads(capsys.readouterr().out)
    found: dict[str, Any] = data["checks"][0]
    return found


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize(
    ("name", "strategy", "sites", "compared"),
    [
        ("checkpointed", "own", 9, 9),
        ("scanned", "own", 3, 3),
        ("closed_over", "remat", None, None),
        ("everything", "own", 6, 6),
        ("under_policies", "own", 6, 6),
        ("complex_numbers", "own", None, None),
    ],
)
def test_what_is_right_passes(
    capsys: pytest.CaptureFixture[str],
    file: str,
    name: str,
    strategy: str,
    sites: int | None,
    compared: int | None,
) -> None:
    """Without -s it is the function as it is, or one checkpoint around it."""
    found = checked(capsys, f"{file}:{name}")
    assert (found["strategy"], found["passed"]) == (strategy, True)
    assert found["compared"] > 0
    if sites is not None:
        assert (found["sites"], found["compared"]) == (sites, compared)
    assert found["usable_directions"] >= 1
    assert all(along["agrees"] for along in found["differences"])
    assert found["compiled"] is None


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
@NEEDS_FLAX
def test_a_network_of_flax_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """The bias of the keys moves all scores of a row alike: its gradient is rounding."""
    found = checked(capsys, str(EXAMPLES / "jax_flax.py:make"))
    assert found["passed"]
    assert found["compared"] > 200
    assert found["usable_directions"] == 8
    assert all("['key']['bias']" in name for name in found["not_compared"])


@pytest.mark.slow
@NEEDS_JAX
def test_a_rule_that_is_wrong_is_seen_by_a_difference_alone(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    found = checked(capsys, f"{file}:kinked", code=5)
    assert found["agreement"]["gradient_relative"] <= 1e-5
    assert found["wrong_gradients"] == []
    assert {along["agrees"] for along in found["differences"]} == {False}
    assert found["differences"][0]["apart"] == pytest.approx(5e-4, rel=0.01)


@pytest.mark.slow
@NEEDS_JAX
def test_what_is_rough_decides_nothing(capsys: pytest.CaptureFixture[str], file: str) -> None:
    assert checked(capsys, f"{file}:rough")["usable_directions"] == 0
    assert checked(capsys, f"{file}:rough", "--strict", code=4)["passed"]


@pytest.mark.slow
@NEEDS_JAX
def test_a_callback_that_is_no_function_is_found(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """The command refuses it; what would be seen of it is the product that it goes into."""
    import jax

    from ckptcli.peers.jax_function import load_function
    from ckptcli.peers.jax_recheck import Recheck

    for command in ("run", "check"):
        assert run_command([command, "--function", f"{file}:moody"]) == 1
        assert "does something else each time: the loss is" in capsys.readouterr().err
    user = load_function(f"{file}:moody")
    parameters, arrays = user.parameter_leaves(), user.other_arrays()
    recheck = Recheck(jax.make_jaxpr(user.scalar)(parameters, arrays), parameters, arrays)
    compared, wrong = recheck.op_by_op()
    assert compared > len(wrong) > 0
    first = wrong[0]
    assert (first.primitive, first.region) == ("mul", 1)
    assert first.line == f"{file}:{line_of('is another each time')}"


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.skipif(platform.machine() != "x86_64", reason="which signs turn is the LAPACK's")
def test_it_finds_the_fault_of_the_trg() -> None:
    """The norm is rooted in the forward pass and not in the recomputation: the division differs."""
    done = subprocess.run(
        [*CKPT, "check", "--function", f"{TRG}:make", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_CORETYPE": "Haswell"},
    )
    assert done.returncode == 5, done.stderr
    (found,) = json.loads(done.stdout)["checks"]
    assert found["strategy"] == "own"
    assert found["agreement"]["gradient_relative"] > 1e-8
    assert found["op_by_op"]["gradient_relative"] < 1e-12
    assert found["wrong_values"] == []
    assert found["compared"] > 150
    first = found["compiled"]["first"]
    number = 1 + TRG.read_text().splitlines().index("    x = tensor / norm")
    assert (first["primitive"], first["line"]) == ("div", f"{TRG}:{number}")
    assert first["ulp"] <= 2.0
    assert found["compiled"]["is_undisturbed"]
    assert found["compiled"]["farthest"]["apart"] > 1e-6


@pytest.mark.slow
@NEEDS_JAX
def test_the_screen(capsys: pytest.CaptureFixture[str], file: str) -> None:
    command = ["check", "--function", f"{file}:unsettled", "-n", "3", "-s", "own", "-s", "sqrt"]
    assert run_command(command) == 0
    captured = capsys.readouterr()
    assert "own: passed" in captured.out
    assert "bit for bit (1 equation inside checkpoints)" in captured.out
    assert "rounding alone: the gradient of params['bias']" in captured.out
    assert "sqrt: n/a" in captured.out
    assert "warning: --n has no effect on a function" in captured.err
