"""`ckpt run`, `check`, `saved` and `log` on the TRG: what they print, and how they end."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.record_json import read_record
from ckptcli.report.run_table import command_line
from ckptcli.workloads.ising import infinite_lattice, torus
from tests.backend_kit import NEEDS_TORCH
from tests.test_schema import check as check_schema
from tests.trg import GOLDEN, one_blas_thread

pytestmark = pytest.mark.usefixtures(one_blas_thread.__name__)

PAGE = Path(__file__).parent.parent / "docs" / "when-checkpointing-changes-the-gradient.md"
COMMANDS = re.findall(r"^\$ ckpt (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.M)

RUN = ("run", "--workload", "trg", "--reps", "1", "--warmup", "0")


def record(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    assert run_command([*RUN, *arguments, "--json", "-q"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run_command(list(arguments)) == code
    return capsys.readouterr().out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_command(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.slow
def test_the_record_has_value_gradient_and_exact_pair(capsys: pytest.CaptureFixture[str]) -> None:
    data = record(capsys, "--steps", "4", "-s", "none", "-s", "remat")
    check_schema(data)
    exact = torus(0.3, 4)
    for entry in data["strategies"]:
        assert entry["loss"] == pytest.approx(GOLDEN[0.3][4][0], rel=1e-12)
        assert entry["gradient"] == pytest.approx(GOLDEN[0.3][4][1], rel=1e-12)
        assert entry["exact"] == [exact.loss, exact.gradient]
        assert entry["finite_difference"] == pytest.approx(entry["gradient"], rel=1e-9)
    settings = {"name": "trg", "steps": 4, "chi": 16, "beta": 0.3, "svd_eps": 1e-12}
    assert settings.items() <= data["workload"].items()
    assert data["workload"]["dtype"] == "float64"


@pytest.mark.slow
def test_of_twenty_steps_the_exact_pair_is_onsagers(capsys: pytest.CaptureFixture[str]) -> None:
    data = record(capsys, "-s", "none", "-s", "remat")
    exact = infinite_lattice(0.3)
    none, remat = data["strategies"]
    assert none["exact"] == remat["exact"] == [exact.loss, exact.gradient]
    assert none["gradient"] - exact.gradient == pytest.approx(-3.9e-7, abs=1e-8)
    assert none["gradient"] == remat["gradient"]
    assert remat["saved_bytes"] == 8393032


@pytest.mark.slow
def test_a_difference_that_says_little_is_said_to(capsys: pytest.CaptureFixture[str]) -> None:
    """Near the critical point the loss of 20 steps is rough on the scale of the steps."""
    data = record(capsys, "--beta", "0.44", "-s", "none")
    (entry,) = data["strategies"]
    assert entry["gradient"] == pytest.approx(GOLDEN[0.44][20][1], rel=1e-11)
    assert any(
        warning.startswith("the finite difference of the loss cannot be used: ")
        for warning in data["warnings"]
    )


@pytest.mark.slow
def test_between_torus_and_infinite_lattice_nothing_is_exact(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (entry,) = record(capsys, "--steps", "7", "-s", "none")["strategies"]
    assert entry["exact"] is None
    assert entry["gradient"] == pytest.approx(GOLDEN[0.3][7][1], rel=1e-12)


@pytest.mark.slow
def test_a_program_of_many_numbers_has_no_single_gradient(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["run", "-l", "1", "-n", "4", "-s", "none", "--reps", "1", "--json", "-q"]
    (entry,) = json.loads(printed(capsys, *arguments))["strategies"]
    assert (entry["gradient"], entry["exact"], entry["finite_difference"]) == (None, None, None)


@pytest.mark.slow
def test_a_record_from_before_these_keys_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    data = record(capsys, "--steps", "2", "-s", "none")
    for entry in data["strategies"]:
        for key in ("gradient", "exact", "finite_difference"):
            del entry[key]
        for node in entry["trace"]["nodes"]:
            del node["name"]
    outcome = read_record(json.dumps(data), "old").rows[0].outcome
    assert (outcome.gradient, outcome.exact, outcome.finite_difference) == (None, None, None)


def printed_number(before: str, text: str) -> float:
    """The number that stands after some words, with all its digits."""
    (digits,) = re.findall(re.escape(before) + r"([0-9.]{15,})", text)
    return float(digits)


@pytest.mark.slow
def test_the_screen_has_the_table_of_the_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, *RUN, "--steps", "5", "-s", "none", "-s", "remat", "--width", "160")
    loss, gradient = GOLDEN[0.3][5]
    assert printed_number("lnZ/N = ", text) == pytest.approx(loss, rel=1e-12)
    assert printed_number(", exact ", text) == pytest.approx(loss, rel=1e-12)
    assert printed_number("exact gradient = ", text) == pytest.approx(gradient, rel=1e-12)
    assert printed_number("finite difference = ", text) == pytest.approx(gradient, rel=1e-9)
    head, rows = text.partition("finite difference")[2].split("\n", 2)[2].split("\n", 1)
    assert head.split() == [
        *("strategy", "gradient", "error", "|grad", "-", "fd|", "|grad", "-", "none|", "saved"),
        *("peak", "total", "gradient", "is"),
    ]
    none, remat = re.findall(r"(none|remat) +0\.74479343324736\d +\S+e-1\d +\S+e-1\d", rows)
    assert (none, remat) == ("none", "remat")


@pytest.mark.slow
def test_a_gradient_that_is_nan_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*RUN, "--steps", "5", "--svd-eps", "0", "-s", "none"]
    assert run_command(arguments) == 0
    captured = capsys.readouterr()
    assert "none: the gradient is nan" in captured.err
    assert re.search(r"none +nan", captured.out)
    assert record(capsys, "--steps", "5", "--svd-eps", "0", "-s", "none")["strategies"][0][
        "gradient"
    ] is None  # fmt: skip
    text = printed(
        *(capsys, "check", "--workload", "trg", "--steps", "5", "--svd-eps", "0", "-s", "remat"),
        code=5,
    )
    assert "+nan against +7.4" in text
    assert "DIFFERS" in text


@pytest.mark.slow
def test_check_goes_through_a_range_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "check", "--workload", "trg", "--steps", "1..3,5", "-s", "remat")
    assert re.findall(r"^steps = (\d)", text, flags=re.M) == ["1", "2", "3", "5"]
    assert text.count("remat: passed") == 4


@pytest.mark.slow
def test_check_shows_from_which_step_on_a_flip_is_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["check", "--workload", "trg", "--steps", "3..5", "-s", "remat", "--json"]
    text = printed(capsys, *arguments, "--perturb-replay", "sign:4,a,5", code=5)
    checks = [json.loads(line)["checks"][0] for line in text.splitlines()]
    assert [found["passed"] for found in checks] == [True, False, False]
    assert [len(found["wrong_gradients"]) for found in checks] == [0, 0, 1]
    (gauge,) = checks[2]["gauges"]
    assert (gauge["layer"], gauge["flipped"]) == (3, [5])


@pytest.mark.slow
def test_check_names_step_op_gauge_and_how_far_the_gradient_moved(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And writes no smaller part, since the program is no graph file."""
    monkeypatch.chdir(tmp_path)
    arguments = ["check", "--workload", "trg", "--steps", "5", "-s", "remat"]
    text = printed(capsys, *arguments, "--perturb-replay", "sign:4,a,5+6", code=5)
    assert re.search(r"beta: element \[0\]: 0\.744\d+ became .*, moved by -3\.\d+e-04", text)
    assert re.search(
        r"decompositions +step 4, node \d+ \(svd\) differs in the signs of columns 5, 6: "
        r"a gauge, not an error of size",
        text,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_run_ends_with_5_on_a_perturbed_replay(capsys: pytest.CaptureFixture[str]) -> None:
    data = record(
        *(capsys, "--steps", "5", "-s", "remat", "--perturb-replay", "sign:4,a,0"), code=5
    )
    none, remat = data["strategies"]
    assert remat["judgement"]["word"] == "wrong"
    assert remat["gradient"] - none["gradient"] == pytest.approx(-5.20e-2, rel=5e-3)
    assert "recomputation is wrong on purpose: sign:4,a,0" in data["warnings"]


@pytest.mark.slow
def test_a_fault_that_meets_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "-n", "4", "--perturb-replay", "reciprocal"]) == 0
    assert "--perturb-replay reciprocal met no value that is computed again" in (
        capsys.readouterr().err
    )


@pytest.mark.slow
def test_saved_sets_every_byte_beside_the_sweep_by_hand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["saved", "--workload", "trg", "--steps", "5", "-s", "none"]
    text = printed(capsys, *arguments)
    assert re.search(r"total +3910328 +2790056 +\+1120272 +528640", text)
    (entry,) = json.loads(printed(capsys, *arguments, "--json"))["strategies"]
    assert sum(part["held_bytes"] for part in entry["by_hand"]) == entry["saved_bytes"] == 3910328
    assert sum(part["residual_bytes"] for part in entry["by_hand"]) == 2790056


def test_log_takes_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "log", "--workload", "trg", "--steps", "2", "-s", "remat")
    assert text.count("retrieve_node_output") > 20
    explained = printed(
        *(capsys, "log", "--workload", "trg", "--steps", "2", "-s", "remat", "--explain")
    )
    assert "svd" in explained


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("command", [RUN, ("saved",), ("log",), ("check",)])
def test_a_dtype_that_numpy_lacks_is_taken(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    arguments = ["--workload", "trg", "--steps", "2", "--dtype", "bfloat16", "--backend", "torch"]
    text = printed(capsys, *command, *arguments, "-s", "remat")
    assert text
    if command == ("saved",):  # half of what float32 takes
        assert by_hand_total(text) * 2 == by_hand_total(
            printed(capsys, "saved", *arguments, "--dtype", "float32", "-s", "remat")
        )


def by_hand_total(text: str) -> int:
    """Of the sweep by hand with residuals."""
    (total,) = re.findall(r"^ total +\d+ +(\d+)", text, flags=re.M)
    return int(total)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--beta", "0"), "--beta is 0.0"),
        (("--beta", "-1"), "--beta"),
        (("--beta", "1000"), "--beta is 1000.0"),
        (("--beta", "nan"), "nan is not a finite number"),
        (("--beta", "1e999"), "1e999 is not a finite number"),
        (("--beta", "0.3,"), "in `0.3,`, `` is no number"),
        (("--chi", "0"), "--chi"),
        (("--svd-eps", "-1"), "--svd-eps"),
        (("--svd-eps", "inf"), "inf is not a finite number"),
        (("--steps", "0"), "--steps"),
        (("--steps", "5..3"), "`5..3` is no whole number and no range"),
        (("--steps", "a"), "`a` is not a whole number"),
        (("--steps", "1,"), "in `1,`, `` is no whole number"),
        (("--steps", "1001"), "--steps is 1001"),
        (("--steps", "1..101"), "more than 100 values"),
        (("--perturb-replay", "sometimes"), "`sometimes` is no way to perturb a replay"),
        (("--steps", "3", "--perturb-replay", "sign:4,a,0"), "names step 4, and the program has 3"),
        (("--steps", "4", "--perturb-replay", "sign:2,a,7"), "turns column 7"),
    ],
)
def test_a_wrong_option_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reason: str
) -> None:
    assert reason in refusal(capsys, *RUN, "-s", "remat", *arguments)


def test_an_argument_after_the_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "workload `trg` takes no argument" in refusal(capsys, "log", "--workload", "trg:5")


@pytest.mark.slow
def test_the_command_that_measures_again_does(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--steps", "2", "-s", "remat", "--perturb-replay", "sign:1,a,0"]
    data = record(capsys, *arguments, code=5)
    again = command_line(read_record(json.dumps(data), "text"))
    assert again is not None
    options = shlex.split(again)[1:]
    assert options[-2:] == ["--perturb-replay", "sign:1,a,0"]
    found = json.loads(printed(capsys, *options, "--json", "-q", code=5))
    assert found["workload"] == data["workload"]
    assert [entry["gradient"] for entry in found["strategies"]] == [
        entry["gradient"] for entry in data["strategies"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_end_as_it_says(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """A fault ends with 5, unless what it would disturb is kept."""
    is_wrong = "--perturb-replay" in command and "names" not in command
    text = printed(capsys, *shlex.split(command), code=5 if is_wrong else 0)
    assert ("a gauge, not an error of size" in text) == is_wrong


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) >= 6
