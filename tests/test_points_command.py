"""`ckpt run` with lists: one table, one record, conditions, exports, comparisons, interrupts."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.record_json import read_record
from ckptcli.report.run_table import command_line

TINY = ("-n", "8", "--reps", "2")
EXPORT = ("--json", "--export", "run.json")


def ckpt(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ckptcli", *arguments],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        timeout=120,
    )


Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = run_command(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.slow
def test_a_list_is_one_table(tmp_path: Path) -> None:
    done = ckpt("run", "-l", "1,2", *TINY, "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "silu, n = 8, layers = 1,2"
    heads = [line for line in lines if re.match("layers +strategy ", line)]
    assert len(heads) == 1
    begin = [line.split()[:2] for line in lines[lines.index(heads[0]) + 2 :]]
    assert begin == [["1", "none"], ["1", "balanced"], ["2", "none"], ["2", "balanced"]]
    answers = [line for line in lines if line.startswith("layers=")]
    assert [line.split(":")[0] for line in answers] == [
        *("layers=1 none", "layers=1 balanced", "layers=2 none", "layers=2 balanced")
    ]


def test_the_record_has_points_and_the_list_as_it_was_given(ran: Ran) -> None:
    code, out, _ = ran("run", "-l", "1..2", "-n", "4,8", "--reps", "2", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["config"]["layers"] == "1..2"
    assert data["config"]["n"] == "4,8"
    assert [row["point"] for row in data["strategies"]] == [
        {"layers": layers, "n": n} for layers in (1, 2) for n in (4, 8) for _ in range(2)
    ]
    assert [program["workload"]["title"] for program in data["programs"]] == [
        f"n = {n}, layers = {layers}" for layers in (1, 2) for n in (4, 8)
    ]
    assert "layers" not in data["workload"]


def test_one_program_has_no_point(ran: Ran) -> None:
    _, out, _ = ran("run", "-l", "1..1", *TINY, "--json")
    data = json.loads(out)
    assert data["programs"] == []
    assert [row["point"] for row in data["strategies"]] == [{}, {}]
    assert (data["config"]["layers"], data["workload"]["layers"]) == (1, 1)


def test_what_is_proposed_to_measure_again_measures_the_same(ran: Ran) -> None:
    _, out, _ = ran("run", "-l", "1,2", *TINY, "-s", "remat", "--json")
    again = command_line(read_record(out, "it"))
    assert again is not None
    assert " --layers 1,2 " in again
    code, other, _ = ran(*shlex.split(again)[1:], "--json")
    assert code == 0
    assert [row["point"] for row in json.loads(other)["strategies"]] == [
        row["point"] for row in json.loads(out)["strategies"]
    ]
    assert json.loads(other)["workload"] == json.loads(out)["workload"]


def test_a_condition_is_asked_of_every_row(ran: Ran) -> None:
    condition = "balanced.saved_bytes > 300"  # 256 bytes a tensor: one of them, then two
    code, _, err = ran("run", "-l", "1..3", *TINY, "-q", "--fail-on", condition)
    assert code == 3
    fired = [line for line in err.splitlines() if line.startswith("failed: ")]
    assert fired == [
        f"failed: layers={layers} balanced: `{condition}` holds, at {256 * layers}"
        for layers in (2, 3)
    ]
    code, _, err = ran("run", "-l", "1,2", *TINY, "-q", "--fail-on", "saved_bytes > -55%")
    assert code == 3
    assert "layers=1 balanced: " in err
    assert "layers=2 balanced: " not in err, "whose change is -60 % of its own `none`"
    code, _, err = ran("run", "-l", "1,2", *TINY, "--fail-on", "sqrt.time > 1")
    assert code == 2


def test_strict_wants_every_verdict_clear(ran: Ran) -> None:
    code, _, _ = ran("run", "-l", "1,2", "-n", "8", "--reps", "3", "-q", "--strict")
    assert code == 4


def test_every_export_and_show(ran: Ran, tmp_path: Path) -> None:
    names = ("a.json", "a.csv", "a.md", "a.html", "a.svg", "a.trace.json")
    exports = [word for name in names for word in ("--export", name)]
    code, out, _ = ran("run", "-l", "1,2", *TINY, *exports)
    assert code == 0
    code, shown, _ = ran("show", "a.json")
    assert (code, shown) == (0, out)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert {(row["strategy"], row["layers"]) for row in rows} == {
        (name, layers) for name in ("none", "balanced") for layers in ("1", "2")
    }
    for view, words in (
        ("--hist", ("n = 8, layers = 1\n", "n = 8, layers = 2\n")),
        ("--stats", ("layers=1 none", "layers=2 balanced")),
        ("--timeline", ("n = 8, layers = 1\n", "n = 8, layers = 2\n")),
    ):
        code, text, _ = ran("show", "a.json", view)
        assert code == 0
        assert all(word in text for word in words), view
    processes = {
        event["args"]["name"]
        for event in json.loads((tmp_path / "a.trace.json").read_text())["traceEvents"]
        if event["name"] == "process_name"
    }
    assert processes == {f"layers={n} {s}" for n in (1, 2) for s in ("none", "balanced")}


def test_compare_and_its_conditions(ran: Ran, tmp_path: Path) -> None:
    ran("run", "-l", "1,2", *TINY, "--export", "a.json", "-q")
    ran("run", "-l", "2,3", *TINY, "--export", "b.json", "-q")
    code, out, err = ran(
        "compare", "a.json", "b.json", "--json", "--fail-on", "none.saved_bytes > 1B"
    )
    (found,) = json.loads(out)["comparisons"]
    assert [(entry["strategy"], entry["point"]) for entry in found["strategies"]] == [
        ("none", {"layers": 2}),
        ("balanced", {"layers": 2}),
    ]
    assert found["only_base"] == ["layers=1 none", "layers=1 balanced"]
    assert found["only_new"] == ["layers=3 none", "layers=3 balanced"]
    assert code == 3
    assert "b.json: layers=2 none: `none.saved_bytes > 1B` holds" in err
    _, text, _ = ran("compare", "a.json", "b.json")
    assert "layers=2 balanced" in text
    assert "only in the base: layers=1 none, layers=1 balanced" in text


@pytest.mark.slow
def test_processes(ran: Ran) -> None:
    code, out, _ = ran("run", "-l", "1,2", *TINY, "--processes", "2", "--json")
    data = json.loads(out)
    assert code == 0
    for row in data["strategies"]:
        assert {sample["process"] for sample in row["passes"]["counted"]} == {0, 1}
    assert data["config"]["layers"] == "1,2"
    assert data["workload"]["title"] == "n = 8, layers = 1,2"


def test_a_program_that_cannot_fit_is_refused_before_any_is_measured(ran: Ran) -> None:
    code, out, err = ran("run", "-n", "8,4000000", "-l", "1", "--reps", "1")
    assert (code, out) == (1, "")
    assert "n = 4000000, layers = 1 needs at least" in err


def test_cases_of_a_file_are_no_list(ran: Ran, tmp_path: Path) -> None:
    leaf = {"op": "leaf", "req": True, "data": [1.0]}
    case = json.dumps({"ops": [leaf, {"op": "sum", "in": [0]}], "root": 1})
    (tmp_path / "g.jsonl").write_text(f"{case}\n{case}\n")
    code, _, err = ran("run", "--workload", "graph:g.jsonl")
    assert code == 2
    assert "stands for 2 programs" in err


def test_the_logger_tells_every_program(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "burn.toml").write_text('[autodiff.logger]\nlevel = "full"\nstdout = true\n')
    _, out, _ = ran("run", "-l", "1,2", *TINY, "-s", "balanced", "--no-reference", "-q")
    heads = [line for line in out.splitlines() if line.startswith("device = ")]
    assert [head.rpartition(", ")[2] for head in heads] == ["layers = 1", "layers = 2"]


def test_a_fault_is_computed_in_every_program(ran: Ran) -> None:
    words = ("--workload", "trg", "--steps", "2,3", "-s", "remat", "--reps", "1")
    code, out, err = ran("run", *words, "--perturb-replay", "reciprocal", "--json")
    data = json.loads(out)
    assert {row["strategy"] for row in data["strategies"]} == {"none", "remat"}
    assert code in (0, 5)
    assert "recomputation is wrong on purpose: reciprocal" in err


@pytest.mark.slow
def test_an_interrupted_command_prints_what_is_measured(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ckptcli", "run", "-l", "1,2,900", *TINY, *EXPORT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=tmp_path,
    )
    told = ""
    while '"layers": 900' not in told:
        assert process.poll() is None, "the last program takes long"
        told = (tmp_path / "run.json").read_text() if (tmp_path / "run.json").exists() else ""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    data = json.loads(out)
    assert process.returncode == 130, err
    counts = {row["point"]["layers"]: len(row["passes"]["counted"]) for row in data["strategies"]}
    assert (counts[1], counts[2]) == (2, 2)
    assert data["partial"]
