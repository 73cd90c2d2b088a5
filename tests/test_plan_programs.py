"""`ckpt plan` of a program: predicted beside measured, files that go round, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from tests.test_predicted_programs import EXAMPLES

SMALL = ("--n", "16", "--layers", "3")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(*arguments: str) -> int:
    return run_command(["plan", "-q", *SMALL, *arguments])


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_plan_that_is_run_takes_what_was_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--consume-grads",), ("--cost", "count"), ("--cost", "time")):
        assert plan("--budget", "9KiB", "--run", "--json", *more) == 0
        found = printed(capsys)
        assert found["feasible"]
        assert found["measured"]["peak_bytes"] == found["peak"] <= 9 * 1024
        assert found["measured"]["within_budget"]
        assert found["measured"]["gradients_equal"]
        assert found["time_s"] >= found["none_time_s"] > 0 < found["measured"]["time_s"]
        assert found["limited_by"][0] == "the budget"
        assert found["covers"]["gradients"] == ("consumed" if "--consume-grads" in more else "kept")


def test_the_screen_says_what_is_held_and_what_a_budget_covers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan("--budget", "9KiB", "--run", "--width", "200") == 0
    screen = capsys.readouterr().out
    assert "a budget covers all that the pass adds above 4.0 KiB of parameters and input" in screen
    assert "p of layer 0 (1.0 KiB): needed by the backward step of h of layer 0" in screen
    assert "rebuilding costs one matmul: 8,192 operations, " in screen
    assert "limited by the budget; the order of the tape's gradients" in screen
    assert "predicted time" in screen
    assert "measured: peak" in screen
    assert "as predicted" in screen
    assert re.search(r"times the predicted, .* times none's \(predicted 1\.\d\d\)", screen)
    assert "gradients identical" in screen


def test_a_budget_that_is_enough_for_everything_limits_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan("--budget", "1e30", "--width", "200") == 0
    screen = capsys.readouterr().out
    assert "nothing computed again" in screen
    assert "1.00 times none's" in screen
    assert "every value is held" in screen
    assert "limited by" not in screen


def test_a_budget_below_the_floor_ends_with_1_and_says_what_sets_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan("--budget", "1KiB", "--width", "200") == 1
    screen = capsys.readouterr().out
    assert "no plan was found" in screen
    assert re.search(
        r"no plan takes less than [\d.]+ KiB, which is live during backward of h of layer 0: "
        r"p of layer 0, s of layer 0 and [\d.]+ KiB beside these",
        screen,
    )
    assert "limited by" not in screen, "it is proved that nothing fits"
    assert plan("--budget", "1KiB", "--json") == 1
    found = printed(capsys)
    assert found["limited_by"] == []
    assert plan("--budget", str(found["min_budget"])) == 0
    assert plan("--budget", str(found["min_budget"] - 1)) == 1
    assert found["min_budget_proved"]


def test_a_plan_file_is_executed_and_refuses_another_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan("--budget", "9KiB", "--export", "plan.json") == 0
    run = ["run", "-q", "-s", "none", "-s", "plan:plan.json", "--layers", "3", "--reps", "2"]
    capsys.readouterr()
    assert run_command([*run, "--n", "16", "--json"]) == 0
    rows = printed(capsys)["strategies"]
    assert rows[1]["grad_sha256"] == rows[0]["grad_sha256"]
    assert run_command([*run, "--n", "8"]) == 2
    assert "another program: node 0 is a leaf of shape [8, 8]" in capsys.readouterr().err


def test_a_graph_file_gives_the_same_plan_without_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan("--budget", "9KiB", "--export-graph", "graph.json", "--json") == 0
    of_program = printed(capsys)
    words = ["plan", "-q", "--graph", "graph.json", "--budget", "9KiB", "--json"]
    assert run_command(words) == 0
    of_file = printed(capsys)
    assert of_file == of_program
    assert run_command([*words, "--run"]) == 2
    assert "--run needs the program" in capsys.readouterr().err


def test_a_graph_without_times_is_planned_by_operations_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan("--budget", "9KiB", "--export-graph", "graph.json") == 0
    graph = json.loads(Path("graph.json").read_text(encoding="utf-8"))
    Path("graph.json").write_text(json.dumps({**graph, "step_times_s": []}), encoding="utf-8")
    capsys.readouterr()
    words = ["plan", "-q", "--graph", "graph.json", "--budget", "9KiB"]
    assert run_command([*words, "--json"]) == 0
    found = printed(capsys)
    assert found["time_s"] is found["none_time_s"] is found["named"][0]["time_s"] is None
    assert run_command(words) == 0
    assert "time" not in capsys.readouterr().out
    assert run_command([*words, "--cost", "time"]) == 2
    assert "was not timed" in capsys.readouterr().err


def test_a_graph_file_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("graph.json").write_text('{"kind": "program", "title": 3}', encoding="utf-8")
    assert run_command(["plan", "--graph", "graph.json", "--budget", "9KiB"]) == 2
    assert "graph.json: `schema` is missing" in capsys.readouterr().err


@pytest.mark.slow
def test_the_frontier_has_the_strategies_and_says_which_are_beaten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan("--pareto", "--json") == 0
    found = printed(capsys)
    assert found["cost_unit"] == "time"
    points = found["pareto"]
    assert all(point["time_s"] >= found["none_time_s"] * 0.999 for point in points)
    plans = [point for point in points if not point["name"]]
    peaks = [point["peak_bytes"] for point in plans]
    costs = [point["cost"] for point in plans]
    assert peaks == sorted(peaks, reverse=True)
    assert costs == sorted(costs)
    beaten = {point["name"]: point["is_dominated"] for point in points if point["name"]}
    assert beaten["segments:2"]
    assert not beaten["none"]
    assert plan("--pareto") == 0
    assert "computed again\n|" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "there is nothing to plan"),
        (("--budget", "much"), "--budget `much` is no size"),
        (("--budget", "-1"), "--budget -1 is below 0"),
        (("--budget", "1KiB", "--n", "8,16"), "the options stand for 2 programs"),
        (("--budget", "1KiB", "--planner", "revolve"), "planner `revolve` does not take a program"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(*words) == 2
    assert message in capsys.readouterr().err


def test_a_run_that_consumes_its_gradients_has_the_same_ones_and_a_lower_peak(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = ["run", "-q", *SMALL, "-s", "none", "-s", "budget:7KiB", "--reps", "2", "--json"]
    assert run_command([*run[:8], "--reps", "2", "--json"]) == 0
    kept = printed(capsys)
    assert run_command([*run, "--consume-grads"]) == 0
    consumed = printed(capsys)
    assert consumed["config"]["consume_grads"]
    shas = {row["grad_sha256"] for row in (*kept["strategies"], *consumed["strategies"])}
    assert len(shas) == 1
    peaks = [row["ledger_peak_bytes"] for row in (kept["strategies"][0], *consumed["strategies"])]
    assert peaks[0] >= peaks[1] > peaks[2]
    after = [record["strategies"][0]["after_backward_bytes"] for record in (kept, consumed)]
    assert after[0] - after[1] == 3 * 16 * 16 * 4


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(("--workload", f"{EXAMPLES / 'mlp.py'}:make"), marks=pytest.mark.slow),
        ("--workload", "trg", "--steps", "2", "--chi", "2"),
        ("--workload", "graph:graph.json"),
    ],
)
def test_every_kind_of_program_can_consume_its_gradients(
    workload: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    leaf = {"op": "leaf", "data": [1.0, 2.0], "req": True}
    ops = [leaf, {"op": "exp", "in": [0]}, {"op": "sum", "in": [1]}]
    Path("graph.json").write_text(json.dumps({"ops": ops}), encoding="utf-8")
    run = ["run", "-q", *workload, "-s", "none", "--memory-only", "--json"]
    shas = set()
    for more in ([], ["--consume-grads"]):
        assert run_command([*run, *more]) == 0
        shas.add(printed(capsys)["strategies"][0]["grad_sha256"])
    assert len(shas) == 1


def test_a_plan_is_checked_in_float64_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Whose bytes are twice those of the budget."""
    assert run_command(["check", "--n", "16", "--layers", "8", "-s", "budget:15000"]) == 0
    assert "10 of 10 are the forward's, bit for bit" in capsys.readouterr().out


@pytest.mark.slow
def test_a_deep_transformer_is_planned_under_half_of_what_none_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of 24 layers in three blocks whose layers differ in size."""
    words = ["plan", "-q", "--workload", f"{EXAMPLES / 'pyramid.py'}:Model", "--json"]
    assert run_command([*words, "--budget", "1GiB"]) == 0
    none = next(row for row in printed(capsys)["named"] if row["strategy"] == "none")
    assert run_command([*words, "--budget", str(none["peak"] // 2 - 1), "--run"]) == 0
    found = printed(capsys)
    assert found["measured"]["peak_bytes"] == found["peak"] < none["peak"] / 2
    assert found["measured"]["gradients_equal"]
    assert found["recomputed"] < 0.2 * none["cost"]
    assert any(" of layer 0 in loop 2 (" in reason for reason in found["reasons"])


def test_a_page_has_the_answer_the_picture_and_the_reasons(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan("--budget", "9KiB", "--run", "--export", "plan.html") == 0
    sentence = capsys.readouterr().out.partition("\n")[0][:60]
    page = Path("plan.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert sentence in page
    assert page.count("<circle") == 10
    assert "p of layer 0 (1.0 KiB): needed by the backward step of h of layer 0" in page
    assert "<script" not in page
    assert re.search(r"<td[^>]*>remat</td>", page)


@pytest.mark.slow
def test_the_page_of_a_frontier_draws_plans_on_a_line_and_beaten_strategies_hollow() -> None:
    assert plan("--pareto", "--export", "front.html", "--export", "front.json") == 0
    page = Path("front.html").read_text(encoding="utf-8")
    (line,) = re.findall(r'<polyline points="([^"]*)"', page)
    assert len(line.split()) + 10 == page.count("<circle")
    assert len(line.split()) > 2
    hollow = re.findall(r'<circle[^>]*fill="none"[^>]*><title>([^:]*:[^:]*): ', page)
    assert "segments:2" in hollow
    assert json.loads(Path("front.json").read_text(encoding="utf-8"))["feasible"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--budget", "9KiB", "--export", "plan.csv"), "that of a program as a page too"),
        (("--module", "m.py:make", "--budget", "1GiB", "--export", "p.html"), "is none"),
        (("--graph", "steps.json", "--slots", "2", "--export", "p.html"), "has a page"),
    ],
)
def test_what_has_no_page_is_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("steps.json").write_text('{"kind": "steps", "n": 5}', encoding="utf-8")
    assert run_command(["plan", *words]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().glob("p*.*"))


def test_the_plot_says_what_its_marks_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["plan", "-q", "-n", "8", "-l", "3", "--cost", "flops", "--pareto"]) == 0
    legend = next(x for x in capsys.readouterr().out.splitlines() if x.startswith(" . a plan"))
    told = {mark.strip()[0] for mark in legend.split(",")}
    assert told == {".", "b", "n", "r", "s"}
    assert "s segments or sqrt" in legend


@pytest.mark.parametrize("kind", ["module", "function"])
def test_the_plan_of_a_model_is_refused_with_the_strategy_that_it_is(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"schema": "ckpt.plan/1", "kind": kind, "feasible": True, "strategy": "remat:only=0..1"}
    (tmp_path / "plan.json").write_text(json.dumps(made))
    assert run_command(["run", "-n", "8", "-s", f"plan:{tmp_path / 'plan.json'}"]) == 2
    told = capsys.readouterr().err
    assert f"is a plan for a {kind}" in told
    assert f"beside its --{kind}: -s remat:only=0..1" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        SMALL,
        ("-n", "16", "-l", "5", "--consume-grads"),
        pytest.param(("--workload", f"{EXAMPLES / 'mlp.py'}:make"), marks=pytest.mark.long),
        pytest.param(("--workload", f"{EXAMPLES / 'recurrent.py'}:make"), marks=pytest.mark.long),
    ],
    ids=["kept", "consumed", "mlp", "recurrent"],
)
def test_a_smaller_budget_never_measures_a_higher_peak(
    program: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "-q", *program, "--json", "--run", "--budget"]
    assert run_command([*words, "1GB"]) == 0
    whole = printed(capsys)["measured"]["peak_bytes"]
    peaks = [whole]
    for share in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4):
        if run_command([*words, str(int(share * whole))]) == 1:
            capsys.readouterr()
            break
        measured = printed(capsys)["measured"]
        assert measured["within_budget"]
        assert measured["gradients_equal"]
        peaks.append(measured["peak_bytes"])
    assert len(peaks) > 2
    assert peaks == sorted(peaks, reverse=True)
