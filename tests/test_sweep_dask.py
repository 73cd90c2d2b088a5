"""`ckpt sweep --on dask`: workers and a scheduler in processes, killed in turn; it goes on."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.record_json import read_record

ROOT = Path(__file__).parents[1]
WITHOUT = importlib.util.find_spec("distributed") is None
needs_dask = pytest.mark.skipif(WITHOUT, reason="needs distributed: pip install '.[sweep]'")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_dask_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run_command(["sweep", "-n", "8", "--on", "dask"]) == 2
    told = capsys.readouterr().err
    assert "--on dask needs distributed, which is not installed" in told
    assert "pip install 'ckptcli[sweep]'" in told


def test_a_scheduler_is_dasks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["sweep", "-n", "8", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "--scheduler has no effect on --on local" in capsys.readouterr().err


@needs_dask
@pytest.mark.slow
def test_a_cluster_of_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-n", "8,16", "-l", "2", "--reps", "1", "--json"]
    done = command(*words, "--on", "dask")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [p["status"] for p in found["points"]] == ["measured", "measured"]
    assert all(row["total_s"] > 0 for p in found["points"] for row in p["rows"])
    assert "Traceback" not in done.stderr


@needs_dask
@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told() -> None:
    done = command("-n", "8", "--on", "dask", "--scheduler", f"tcp://127.0.0.1:{free_port()}")
    assert done.returncode == 2
    assert "does not answer" in done.stderr
    assert "Traceback" not in done.stderr


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ckptcli", "sweep", *words],
        env=ENVIRONMENT,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Cluster:
    """A scheduler on a port of its own and two workers, each a process to be killed."""

    def __init__(self) -> None:
        self.port = free_port()
        self.scheduler = self._start_scheduler()
        self.workers = [self.start_worker() for _ in range(2)]

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def _start_scheduler(self) -> subprocess.Popen[bytes]:
        return started("scheduler", "--host", "127.0.0.1", "--port", str(self.port))

    def start_worker(self) -> subprocess.Popen[bytes]:
        words = ("--nthreads", "1", "--no-nanny", "--resources", "measure=1")
        return started("worker", self.address, *words)

    def kill_worker(self) -> None:
        """And have another one in its place."""
        end(self.workers.pop(0))
        self.workers.append(self.start_worker())

    def kill_scheduler(self) -> None:
        """And have another cluster in its place; workers go with their scheduler."""
        end(self.scheduler)
        for worker in self.workers:
            end(worker)
        self.scheduler = self._start_scheduler()
        self.workers = [self.start_worker() for _ in range(2)]

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            end(process)


def started(what: str, *words: str) -> subprocess.Popen[bytes]:
    program = f"from distributed.cli.dask_{what} import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *words, "--no-dashboard"],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    found = Cluster()
    try:
        yield found
    finally:
        found.end()


def kept_in(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder, "points").glob("*.json")}


def wait_for(folder: str, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + 300
    while len(kept_in(folder)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def memory_of(text: bytes) -> Any:
    """What is the same in every run, to the byte."""
    record = read_record(text.decode(), "a point")
    return record.workload, [(row.identity, row.memory, row.outcome) for row in record.rows]


def check_kills(words: list[str], count: int) -> None:
    """A worker, the scheduler and the command are killed in turn, each with points to come."""
    with cluster() as known:
        line = [*words, "--memory-only", "--out", "s"]
        remote = [*line, "--on", "dask", "--scheduler", known.address, "-q"]

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, "-m", "ckptcli", "sweep", *remote],
                env=ENVIRONMENT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )

        process = start()
        wait_for("s", count // 6, process)
        known.kill_worker()
        wait_for("s", count // 3, process)
        known.kill_scheduler()
        _, told = process.communicate(timeout=300)
        assert process.returncode == 1, told
        assert b"the scheduler of Dask is gone" in told
        assert b"Traceback" not in told
        first = kept_in("s")
        process = start()
        wait_for("s", len(first) + count // 6, process)
        process.kill()
        process.communicate()
        second = kept_in("s")
        assert {name: second[name] for name in first} == first
        done = command(*remote)
        assert done.returncode == 0, done.stderr
    whole = kept_in("s")
    assert {name: whole[name] for name in second} == second
    assert len(second) < len(whole) == count
    assert not list(Path("s", "failures").iterdir())
    assert command(*words, "--memory-only", "--out", "t").returncode == 0
    assert {name: memory_of(text) for name, text in whole.items()} == {
        name: memory_of(text) for name, text in kept_in("t").items()
    }


@needs_dask
@pytest.mark.long
@pytest.mark.slow
def test_twenty_four_points_survive_three_kills() -> None:
    check_kills(["-n", "8..24:+8", "-l", "1..8", "-s", "none"], 24)


@needs_dask
@pytest.mark.long
@pytest.mark.slow
def test_two_hundred_points_survive_three_kills() -> None:
    strategies = ["-s", "none", "-s", "balanced", "-s", "remat", "-s", "sqrt"]
    check_kills(["-n", "8..80:+8", "-l", "1..20", *strategies], 200)
