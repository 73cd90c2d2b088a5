"""`ckpt sweep` as a command: points in processes, the folder, what is told, what it ends with."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.record_json import read_record

ROOT = Path(__file__).parents[1]
MEMORY = ("-n", "8,16", "-l", "2", "--memory-only")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def swept(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert run_command(["sweep", *words, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def points_of(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder, "points").glob("*.json")}


def test_points_have_the_figures_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    found = swept(capsys, *MEMORY, "--out", "s")
    assert found["axes"] == ["n"]
    assert [p["status"] for p in found["points"]] == ["measured", "measured"]
    assert run_command(["run", "-n", "16", "-l", "2", "--memory-only", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    rows = found["points"][1]["rows"]
    assert [row["peak_bytes"] for row in rows] == [r["peak_bytes"] for r in alone["strategies"]]
    assert rows[0]["total_s"] is None
    kept = points_of("s")
    for name, text in kept.items():
        record = read_record(text.decode(), name)
        assert (record.rounds, record.partial) == (0, False)
    again = swept(capsys, *MEMORY, "--out", "s")
    assert again == found
    assert points_of("s") == kept  # not measured again


@pytest.mark.slow
def test_tables_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-n", "8", "--dtype", "float32,float64", "-s", "none", "-s", "remat", "--reps", "2")
    files = ("--export", "s.md", "--export", "s.csv", "--export", "s.json")
    assert run_command(["sweep", *words, "--out", "s", *files]) == 0
    screen = capsys.readouterr().out
    for title in ("peak", "saved for backward", "recomputed", "total time"):
        assert f"\n{title}\n" in screen
    assert "| dtype | none | remat |" in Path("s.md").read_text()
    lines = list(csv.DictReader(io.StringIO(Path("s.csv").read_text())))
    assert [(line["dtype"], line["strategy"]) for line in lines] == [
        (dtype, name) for dtype in ("float32", "float64") for name in ("none", "remat")
    ]
    assert all(float(line["total_s"]) > 0 for line in lines)
    assert json.loads(Path("s.json").read_text()) == swept(capsys, *words, "--out", "s")


@pytest.mark.slow
def test_a_point_that_fails_is_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    """Under the limit of a device `none` does not fit at the larger size, and nothing at 64."""
    words = ("-n", "16,32,64", "-l", "2", "--memory-only", "--device-memory", "55000B")
    found = swept(capsys, *words, "--out", "s", code=1)
    statuses = [(p["status"], len(p["rows"]), len(p["missing"])) for p in found["points"]]
    assert statuses == [("measured", 2, 0), ("measured", 2, 0), ("failed", 0, 0)]
    reason = found["points"][2]["reason"]
    assert "none: out of memory in the memory pass: a peak of " in reason
    assert "; balanced: out of memory in the memory pass: a peak of " in reason
    (failure,) = Path("s", "failures").glob("*.json")
    before = failure.stat().st_mtime_ns
    swept(capsys, *words, "--out", "s", code=1)
    assert failure.stat().st_mtime_ns == before
    swept(capsys, *words, "--out", "s", "--retry", code=1)
    assert failure.stat().st_mtime_ns > before
    assert run_command(["sweep", *words, "--out", "s"]) == 1
    assert "n=64 failed: none: out of memory" in capsys.readouterr().out


@pytest.mark.slow
def test_a_point_that_takes_too_long_failed(capsys: pytest.CaptureFixture[str]) -> None:
    found = swept(capsys, "-n", "512", "--reps", "1000", "--timeout", "1.5", "--out", "s", code=1)
    (point,) = found["points"]
    assert point["reason"] == "it took longer than 1.5 s, the limit that --timeout sets"


@pytest.mark.slow
def test_what_another_version_measured_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    swept(capsys, *MEMORY, "--out", "s")
    path = next(Path("s", "points").glob("*.json"))
    path.write_text(path.read_text().replace('"version": "', '"version": "0.0.0-'))
    assert run_command(["sweep", *MEMORY, "--out", "s"]) == 0
    assert "1 of 2 points were measured at version 0.0.0-" in capsys.readouterr().err


@pytest.mark.slow
def test_conditions_are_asked_of_every_point(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*MEMORY, "--fail-on", "balanced.peak_bytes > 5KiB"]
    assert run_command(["sweep", *words]) == 3
    told = capsys.readouterr().err
    assert "failed: n=16 balanced" in told
    assert "n=8" not in told


def test_what_has_no_effect_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["sweep", "-n", "8", "--retry"]) == 2
    assert "--retry has no effect without --out" in capsys.readouterr().err
    Path("file").write_text("")
    assert run_command(["sweep", "-n", "8", "--out", "file"]) == 2
    assert "cannot be a folder for a sweep" in capsys.readouterr().err
    assert run_command(["run", "--memory-only", "--reps", "3"]) == 2
    assert "--memory-only times nothing" in capsys.readouterr().err
    assert run_command(["run", "--memory-only", "--device-memory", "80Go"]) == 2
    assert "is no size above 0" in capsys.readouterr().err


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ckptcli", "sweep", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for_points(folder: str, count: int) -> None:
    deadline_s = time.monotonic() + 60
    while len(points_of(folder)) < count:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_was_ended_goes_on(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("-n", "8..40:+8", "-l", "2", "--memory-only")
    process = start(*words, "--out", "s")
    wait_for_points("s", 1)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == (-9 if number is signal.SIGKILL else 130)
    assert (b"not reached" in out) == (number is signal.SIGINT)
    kept = points_of("s")
    assert 1 <= len(kept) < 5
    found = swept(capsys, *words, "--out", "s")
    assert [p["status"] for p in found["points"]] == ["measured"] * 5
    assert {name: points_of("s")[name] for name in kept} == kept
    whole = swept(capsys, *words)
    for point in (*whole["points"], *found["points"]):
        assert point.pop("load_average") >= 0
    assert whole["points"] == found["points"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "figures"),
    [
        pytest.param(
            "seed-trg-gradient",
            ["0.84405407362385", "0.7447934332473", "0.704498679529"],
            marks=pytest.mark.long,
        ),
        ("seed-burn-memory", ["132.9 MiB", "80.0 MiB", "92.0 MiB", "32.0 MiB"]),
    ],
)
def test_the_grids_of_the_seeds_give_their_tables(
    name: str, figures: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--threads", "1", "--reps", "1"] if name == "seed-burn-memory" else ["--threads", "1"]
    assert run_command(["sweep", "--grid", str(ROOT / "configs" / f"{name}.toml"), *words]) == 0
    screen = capsys.readouterr().out
    assert [figure for figure in figures if figure not in screen] == []


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("seed-*.toml")), ids=str)
def test_every_grid_says_how_to_use_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert f"\n# Use it: ckpt sweep --grid configs/{path.name}\n" in text
