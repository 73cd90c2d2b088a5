"""`ckpt plan` as a command: problem files and their faults, the JSON, the screen, the actions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command

CHAIN = {"kind": "chain", "uf": [1, 1], "ub": [2, 2], "A": [1, 1, 0], "B": [1, 0]}
DAG = {"kind": "dag", "nodes": [["a", 1, 1, []], ["b", 2, 1, ["a"], 0]], "goals": ["b"]}
STEPS = {"kind": "steps", "n": 10}
KNAPSACK = {"kind": "knapsack", "memory": [5, 4, 4], "runtime": [10, 7, 7]}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(problem: Any, *arguments: str) -> int:
    text = problem if isinstance(problem, str) else json.dumps(problem)
    Path("p.json").write_text(text, encoding="utf-8")
    return run_command(["plan", "--graph", "p.json", *arguments])


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ("", "p.json:1: not JSON"),
        ("[]", "a problem is an object, got []"),
        ('{"kind": "steps", "n": 1, "n": 2}', "'n' is given twice"),
        ("[" * 100_000, "nested too deep"),
        ('{"kind": "steps", "n": ' + "1" * 5000 + "}", "p.json:1: a number has too many digits"),
        ({}, "has no `kind`"),
        ({"kind": "dga"}, "has the kind 'dga'"),
        ({"kind": "steps"}, "`n` is missing"),
        ({"kind": "steps", "n": 0}, "`n` is 0"),
        ({"kind": "steps", "n": True}, "`n` must be a number, got True"),
        ({"kind": "steps", "n": 1.5}, "`n` must be a whole number, got 1.5"),
        ({**KNAPSACK, "runtime": [1]}, "`memory` has 3 entries and `runtime` 1"),
        ({**KNAPSACK, "memory": []}, "`memory` is empty"),
        ({**CHAIN, "uf": [1, float("nan")]}, "entry 1 of `uf` must be a finite number, got nan"),
        ({**CHAIN, "ub": [1, -1]}, "entry 1 of `ub` must not be negative, got -1"),
        ({**CHAIN, "A": [1, 1]}, "`A` has 2 entries for 2 stages of `uf`"),
        ({**CHAIN, "D": [1]}, "`D` has 1 entries for 2 stages"),
        ({**CHAIN, "B": "x"}, "`B` must be a list, got 'x'"),
        ({**CHAIN, "uf": [], "ub": []}, "`uf` is empty"),
        ({**DAG, "nodes": []}, "`nodes` is empty"),
        ({**DAG, "nodes": [["a", 1, 1]]}, "node 0 must be [name, cost, size, parents, workspace]"),
        ({**DAG, "nodes": [["", 1, 1, []]]}, "the name of node 0 must be a name"),
        ({**DAG, "nodes": [["b", 1, 1, "a"]]}, "the parents of node 'b' must be a list of names"),
        ({**DAG, "nodes": [["b", 1, 1, ["c"]]]}, "node 'b' refers to 'c', which is no node"),
        ({**DAG, "nodes": [["b", 1, 1, []], ["b", 1, 1, []]]}, "nodes 0 and 1 are both called 'b'"),
        ({**DAG, "nodes": [["b", float("inf"), 1, []]]}, "the cost of node 'b' must be a finite"),
        ({**DAG, "nodes": [["b", 1, 0.5, []]]}, "the size of node 'b' must be a whole number"),
        ({**DAG, "nodes": [["b", 1, 1, [], -1]]}, "the workspace of node 'b' must not be negative"),
        ({**DAG, "nodes": [["b", 1, 1, ["b"]]]}, "the nodes 'b' <- 'b' form a cycle"),
        (
            {**DAG, "nodes": [["a", 1, 1, ["b"]], ["b", 1, 1, ["a"]]]},
            "the nodes 'a' <- 'b' <- 'a' form a cycle",
        ),
        ({**DAG, "goals": ["c"]}, "`goals` refers to 'c', which is no node"),
        ({**DAG, "goals": []}, "`goals` names no node"),
        ({**DAG, "keep": [1]}, "entry 0 of `keep` must be a name, got 1"),
        ({**DAG, "once": ["q\u001b[0m"]}, "`once` refers to 'q\\x1b[0m', which is no node"),
    ],
)
def test_what_is_no_problem_ends_with_two_and_one_sentence(
    capsys: pytest.CaptureFixture[str], problem: Any, message: str
) -> None:
    assert plan(problem, "--budget", "5", "--json") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: p.json:")
    assert message in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is nothing to plan"),
        (["--graph", "none.json"], "cannot read problem file `none.json`"),
        (["--graph", "p.json", "--budget", "x"], "--budget `x` is no size"),
        (["--graph", "p.json", "--budget", "1/0"], "--budget `1/0` is no size"),
        (["--graph", "p.json", "--budget=-1"], "--budget -1 is below 0"),
        (["--graph", "p.json", "--planner", "revolv"], "did you mean `revolve`?"),
        (["--graph", "p.json", "--planner", "revolve"], "`revolve` does not take a dag"),
        (["--graph", "s.json"], "steps are planned for a number of slots"),
        (["--graph", "p.json", "--actions", "p.json"], "`p.json` exists already"),
    ],
)
def test_a_wrong_command_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    Path("p.json").write_text(json.dumps(DAG))
    Path("s.json").write_text(json.dumps(STEPS))
    assert run_command(["plan", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_json_of_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(DAG, "--budget", "2", "--json") == 0
    found = printed(capsys)
    wanted = {
        "schema": "ckpt.plan/1",
        "feasible": True,
        "runs": "tape",
        "cost": 3,
        "recomputed": 0,
        "peak": 2,
        "proved_optimal": True,
    }
    assert {key: found[key] for key in wanted} == wanted
    assert found["actions"][0] == ["compute", "a"]


def test_the_json_where_nothing_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(DAG, "--budget", "1", "--json") == 1
    found = printed(capsys)
    assert (found["feasible"], found["cost"], found["min_budget"]) == (False, None, 2)
    assert "actions" not in found


def test_sizes_are_exact(capsys: pytest.CaptureFixture[str]) -> None:
    large = 2**70 + 1
    nodes = [["a", 1, large, []], ["b", 1, 1, ["a"]]]
    for budget, code in ((large + 1, 0), (large, 1)):
        assert plan({**DAG, "nodes": nodes}, "--budget", str(budget), "--json") == code
        assert printed(capsys)["min_budget"] == large + 1


def test_a_budget_may_have_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [["a", 1, 2**30, []], ["b", 1, 2**30, ["a"]]]
    assert plan({**DAG, "nodes": nodes}, "--budget", "2 GiB", "--json") == 0
    assert printed(capsys)["budget"] == 2**31


def test_entries_that_mean_nothing_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan({**DAG, "goal": ["a"]}, "--budget", "2", "--slots", "3") == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: p.json: `goal` means nothing in a dag",
        "warning: --slots has no effect on a problem of the kind dag",
    ]


def test_many_actions_are_left_out_and_written_where_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    problem = {"kind": "steps", "n": 30_000}
    assert plan(problem, "--slots", "9", "--json", "--actions", "a.jsonl") == 0
    assert "actions" not in printed(capsys)
    with open("a.jsonl", encoding="utf-8") as file:
        assert json.loads(file.readline()) == ["store", 0]


def test_a_screen_has_the_answer_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(STEPS, "--slots", "3") == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "10 steps within 3 slots: cost 15, peak 3, by revolve"
