"""How a run ends: every exit code from a real process, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CKPT = [sys.executable, "-m", "ckptcli"]
SMALL = ["run", "--n", "16", "--layers", "2"]
ENDLESS = [*SMALL, "--reps", "1000000"]


def ckpt(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CKPT, *arguments], capture_output=True, encoding="utf-8", cwd=cwd, timeout=120
    )


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*CKPT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=cwd,
    )


def wait_for(path: Path) -> None:
    """Until the run has written its first complete round that counts."""
    deadline = time.monotonic() + 60
    while not path.exists() or not finished_rounds(path):
        assert time.monotonic() < deadline, f"{path} was never written"
        time.sleep(0.05)


def finished_rounds(path: Path) -> int:
    record = json.loads(path.read_text())
    assert record["partial"] is True
    return len(record["strategies"][0]["passes"]["counted"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_killed_run_loses_no_finished_round(
    tmp_path: Path, number: signal.Signals, code: int, reason: str
) -> None:
    process = start(*ENDLESS, "--export", "run.json", "--json", cwd=tmp_path)
    wait_for(tmp_path / "run.json")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    rounds = finished_rounds(tmp_path / "run.json")
    assert rounds >= 1
    printed = json.loads(out)
    assert printed["rounds"] == rounds
    assert printed["stopped"] == reason
    assert sorted(os.listdir(tmp_path)) == ["run.json"]


COUNTED = """
def make(device):
    w = device.normal((4, 4)).require_grad()

    def loss():
        with open("passes", "a") as file:
            file.write(".")
        return (w @ w).sum()

    return loss
"""
"""A program that leaves a mark for each of its passes."""


def stopped_after(passes: int, folder: Path, number: signal.Signals) -> tuple[int, str, str]:
    """A run over processes that gets a signal after so many passes: its code, stdout and stderr."""
    (folder / "counted.py").write_text(COUNTED)
    program = ["run", "--workload", "counted.py:make", "--reps", "8000", "--processes", "2"]
    process = start(*program, "--export", "run.json", "-q", cwd=folder)
    marks, deadline = folder / "passes", time.monotonic() + 100
    while not marks.exists() or marks.stat().st_size < passes:
        assert time.monotonic() < deadline, "the passes were never run"
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_process_among_several_loses_no_finished_round(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    returned, out, err = stopped_after(3000, tmp_path, number)
    assert (returned, err) == (code, "")
    assert finished_rounds(tmp_path / "run.json") >= 1
    assert "partial: the run ended early" in out
    assert sorted(os.listdir(tmp_path)) == ["counted.py", "passes", "run.json"]


@pytest.mark.slow
def test_a_timeout_ends_with_124_and_keeps_what_is_complete(tmp_path: Path) -> None:
    done = ckpt(*ENDLESS, "--timeout", "3", "--export", "run.json", cwd=tmp_path)
    assert done.returncode == 124
    assert finished_rounds(tmp_path / "run.json") >= 0
    assert "stopped: --timeout 3 s" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_a_stop_before_the_first_round_says_so(tmp_path: Path) -> None:
    done = ckpt("run", "--n", "1024", "--timeout", "0.05", "--export", "run.json", cwd=tmp_path)
    assert done.returncode == 124
    assert "stopped before anything was measured" in done.stderr
    assert done.stdout == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_timeout_that_is_over_at_once_is_one(tmp_path: Path) -> None:
    done = ckpt(*SMALL, "--timeout", "1e-9", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (124, "")
    assert "--timeout 1e-09 s: stopped before anything was measured" in done.stderr


@pytest.mark.slow
def test_processes_tell_of_no_option_that_nobody_gave(tmp_path: Path) -> None:
    done = ckpt(*SMALL, "--processes", "2", "--reps", "2", cwd=tmp_path)
    assert done.returncode == 0
    assert "has no effect" not in done.stderr


@pytest.mark.slow
def test_an_export_that_fails_ends_with_1_after_the_result_is_printed(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    process = start(*ENDLESS, "--timeout", "6", "--export", "gone/run.json", cwd=tmp_path)
    wait_for(folder / "run.json")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "run.json" in err
    assert "Traceback" not in err
    assert "balanced: effective: peak " in out


@pytest.mark.sampled(13)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--reps", "1"], 0),
        (["--export", "absent/run.json"], 2),
        (["--reps", "6", "--fail-on", "recomputed > 2"], 3),
        (["--reps", "6", "--fail-on", "peak_bytes > 10%"], 0),
        (["--reps", "2", "--strict"], 4),
        (["--reps", "2", "--strict", "--fail-on", "recomputed > 2"], 3),
        (["--reps", "1", "--fail-on", "nonsense"], 2),
        (["--reps", "1", "--fail-on", "balancd.time > 3"], 2),
        (["--timeout", "nan"], 2),
        (["--timeout", "inf"], 2),
        (["--timeout", "1e12"], 2),
        (["--threshold", "nan"], 2),
        (["--max-time", "nan"], 2),
    ],
)
def test_exit_codes(tmp_path: Path, arguments: list[str], code: int) -> None:
    done = ckpt(*SMALL, *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (code != 2)


@pytest.mark.slow
def test_a_wrong_gradient_ends_with_5(tmp_path: Path) -> None:
    """A strategy of the user's that corrupts a value must never pass."""
    program = """
import sys
import ckptcli.checkpoint.strategies.base as base
from ckptcli.autodiff.ops.activation import SIGMOID
object.__setattr__(SIGMOID, "forward", lambda xp, x, shift: xp.add(xp.sigmoid(x), shift or 0.0))
from ckptcli.cli.main import run_command

build = base.build
def corrupt(steps, namespace, sink):
    built = build(steps, namespace, sink)
    for node in getattr(built, 'retro_forwards', {}).values():
        node.params = 1e-3
    return built
base.build = corrupt
sys.exit(run_command(["run", "--n", "16", "--layers", "2", "--reps", "2"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", cwd=tmp_path
    )
    assert done.returncode == 5, done.stderr
    assert "  wrong: a gradient differs from that of `none`" in done.stdout


@pytest.mark.slow
def test_an_existing_export_is_refused_without_force(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("precious")
    done = ckpt(*SMALL, "--reps", "1", "--export", "run.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (tmp_path / "run.csv").read_text() == "precious"
    done = ckpt(*SMALL, "--reps", "1", "--export", "run.csv", "--force", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "run.csv").read_text().startswith("strategy,")


@pytest.mark.slow
def test_stdout_takes_one_export(tmp_path: Path) -> None:
    done = ckpt(*SMALL, "--reps", "1", "--export", "-", "--format", "csv", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("strategy,")
    assert ckpt(*SMALL, "--export", "-", cwd=tmp_path).returncode == 2
    assert ckpt(*SMALL, "--format", "csv", cwd=tmp_path).returncode == 2


@pytest.mark.slow
def test_processes_share_the_rounds(tmp_path: Path) -> None:
    done = ckpt(*SMALL, "--processes", "2", "--reps", "4", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    samples = record["strategies"][1]["passes"]["counted"]
    assert [sample["process"] for sample in samples] == [0, 0, 1, 1]
    assert (record["processes"], record["rounds"]) == (2, 4)
