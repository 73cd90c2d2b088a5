"""Sentences agree with their numbers, at the sizes where one thing is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.units import count, plural

ONE_OF_SEVERAL = re.compile(
    r"(?<![\w.,+-])1 (?!(?:is|was|has|needs|process|bytes moved)\b)[a-z]+s\b"
)
"""`1 units`, `1 rounds`: a plural, or a verb of the plural's, behind one."""

LEAF_AND_SIN = {
    "ops": [{"op": "leaf", "req": True, "data": [1]}, {"op": "sin", "in": [0]}],
    "root": 1,
}
PROBLEMS = {
    "dag": {"kind": "dag", "nodes": [["a", 1, 1, [], 0]], "goals": ["a"]},
    "steps": {"kind": "steps", "n": 1},
}
SMALLEST = ("-n", "1", "-l", "1")
SCREENS = {
    "run": ("run", *SMALLEST, "--reps", "1", "-v"),
    "memory": ("run", *SMALLEST, "--memory-only"),
    "log": ("log", "--workload", "graph:one.jsonl", "--explain"),
    "diff": ("log", *SMALLEST, "--diff", "none", "balanced"),
    "check": ("check", *SMALLEST),
    "saved": ("saved", *SMALLEST),
    "sweep": ("sweep", *SMALLEST, "--memory-only"),
    "plan of a program": ("plan", *SMALLEST, "--budget", "1MiB", "--run"),
    "plan of one byte": ("plan", *SMALLEST, "--budget", "1"),
    "plan of a graph": ("plan", "--workload", "graph:one.jsonl", "--budget", "1MiB"),
    "plan of a dag": ("plan", "--graph", "dag.json", "--budget", "1"),
    "plan of steps": ("plan", "--graph", "steps.json", "--slots", "1"),
    "page": (
        "run",
        "--workload",
        "graph:one.jsonl",
        "--reps",
        "1",
        "--export",
        "-",
        "--format",
        "html",
    ),
}


@pytest.mark.parametrize("name", SCREENS)
def test_one_thing_is_not_called_several(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.jsonl").write_text(json.dumps(LEAF_AND_SIN))
    for kind, problem in PROBLEMS.items():
        Path(f"{kind}.json").write_text(json.dumps(problem))
    run_command(SCREENS[name])
    out, err = capsys.readouterr()
    assert out, err
    assert [line for line in out.splitlines() if ONE_OF_SEVERAL.search(line)] == []


@pytest.mark.parametrize(
    ("noun", "several"),
    [
        ("round", "rounds"),
        ("process", "processes"),
        ("unit of memory", "units of memory"),
        ("byte above parameters and input", "bytes above parameters and input"),
    ],
)
def test_the_head_of_a_phrase_is_counted(noun: str, several: str) -> None:
    assert plural(noun) == several
    assert [count(n, noun) for n in (0, 1, 2)] == [f"0 {several}", f"1 {noun}", f"2 {several}"]
    assert count(0.5, noun, "0.5") == f"0.5 {several}"
