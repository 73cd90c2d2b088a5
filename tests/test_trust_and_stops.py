"""What a run starts and how it ends: no code of the current directory, no child left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ckptcli.cli.stops import Stops
from tests.test_endings import ENDLESS, SMALL, ckpt, start, wait_for

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")

SHADOWS = ("statistics", "json", "numpy", "random", "ckptcli")


def children_of(pid: int) -> list[int]:
    """The processes that a process started, from the system."""
    done = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def until(is_so: object, what: str) -> None:
    deadline = time.monotonic() + 60
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return False


@pytest.mark.slow
def test_measuring_processes_run_no_module_of_the_current_directory(tmp_path: Path) -> None:
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'w')\nraise SystemExit(9)\n")
    program = "import sys; del sys.path[0]; from ckptcli.cli.main import main; main()"
    words = ["run", "--n", "8", "--layers", "1", "--processes", "2", "--reps", "2", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["processes"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{n}.py" for n in SHADOWS)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--processes", "3"]], ids=["alone", "processes"])
def test_a_terminal_that_closes_ends_a_run_as_a_termination_does(
    tmp_path: Path, arguments: list[str]
) -> None:
    """What is complete by then is exported; a process may have completed a round by then."""
    process = start(*ENDLESS, *arguments, "--export", "run.json", cwd=tmp_path)
    if arguments:
        until(lambda: children_of(process.pid), "no process was started")
    else:
        wait_for(tmp_path / "run.json")
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (129, False)
    assert os.listdir(tmp_path) in ([["run.json"], []] if arguments else [["run.json"]])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc who is alive")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_children_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    process = start(*ENDLESS, "--processes", "3", cwd=tmp_path)
    until(lambda: children_of(process.pid), "no process was started")
    children = children_of(process.pid)
    assert all(map(is_alive, children)), "an end that nobody brought about proves nothing"
    process.send_signal(number)
    process.communicate(timeout=60)
    until(lambda: not any(map(is_alive, children)), f"{children} run on")
    assert [child for child in children if is_alive(child)] == []


@pytest.mark.slow
def test_nohup_keeps_a_run(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ckptcli", *SMALL, "--reps", "20000", "--max-time", "2"]
    process = subprocess.Popen(
        ["nohup", *words, "--export", "run.json", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    wait_for(tmp_path / "run.json")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


PROGRAM = """
import signal, time
signal.signal(signal.SIGALRM, signal.SIG_IGN)

def deaf(device):
    {before}
    w = device.tensor([1.0]).require_grad()
    def loss():
        {inside}
        return (w * w).sum()
    return loss
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "inside", "told"),
    [
        ("pass", "pass", "the figures are partial"),
        (
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])",
            "while True: pass",
            "stopped",
        ),
        (
            "pass",
            "while True:\n            try:\n                time.sleep(60)\n"
            "            except BaseException: pass",
            "what runs does not stop, and is ended",
        ),
    ],
    ids=["rounds", "a loop", "a loop that catches all"],
)
def test_a_program_that_ignores_the_alarm_is_stopped(
    tmp_path: Path, before: str, inside: str, told: str
) -> None:
    (tmp_path / "net.py").write_text(PROGRAM.format(before=before, inside=inside))
    words = ["--workload", "net.py:deaf", "--reps", "1000000", "--timeout", "2"]
    done = ckpt("run", *words, "--export", "run.json", cwd=tmp_path)
    assert done.returncode == 124, done.stderr
    assert told in done.stdout + done.stderr
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_a_repository_runs_no_program_of_its_own(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, *who, "commit", "--quiet", "--allow-empty", "-m", "a"], check=True)
    script = tmp_path / "spy"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    subprocess.run([*git, "config", "core.fsmonitor", str(script)], check=True)
    done = ckpt(*SMALL, "--reps", "1", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["origin"]["commit"]
    assert not (tmp_path / "ran").exists()


def test_a_signal_while_the_result_is_told_lets_it_be_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = []
    with Stops(None) as stops:
        stops.measured()
        os.kill(os.getpid(), signal.SIGINT)
        told.append("the result")
        os.kill(os.getpid(), signal.SIGINT)
        told.append("more of it")
    assert told == ["the result"]
    assert stops.exit_code == 130
    assert capsys.readouterr().err == "interrupted: stopped while the result was told\n"


def test_a_signal_while_a_class_is_defined_is_a_stop(capsys: pytest.CaptureFixture[str]) -> None:
    """Before Python 3.12 the interrupt becomes a RuntimeError there, as in an import."""

    class Named:
        def __set_name__(self, owner: type, name: str) -> None:
            signal.raise_signal(signal.SIGTERM)

    with Stops(None) as stops:
        type("Owner", (), {"named": Named()})
    assert stops.exit_code == 143
    assert "terminated: stopped before anything was measured" in capsys.readouterr().err


def stopped_with_a_full_disk() -> None:
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        raise OSError("no space") from None


def test_an_error_while_a_run_is_ended_is_not_lost() -> None:
    with pytest.raises(OSError, match="no space"), Stops(None):
        stopped_with_a_full_disk()
