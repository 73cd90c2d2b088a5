"""A result is written whole or the command says that it is not; stderr decides nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CKPT = [sys.executable, "-m", "ckptcli"]
RUN = ["run", "-l", "2", "-n", "16", "--reps", "3", "-q"]
PIECE_BYTES = 4096
# In the child itself: a fork of this process, where JAX may have threads, could hang.
LIMITED = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({PIECE_BYTES}, {PIECE_BYTES}))
os.execv(sys.executable, [sys.executable, "-m", "ckptcli", *sys.argv[1:]])
"""
FULL = Path("/dev/full")

needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def environment(unbuffered: bool) -> dict[str, str]:
    """Without bytecode: Python leaves a file of it cut off at the limit, on which others trip."""
    rest = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    own = {"PYTHONUNBUFFERED": "1"} if unbuffered else {}
    return {**rest, **own, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("unbuffered", [True, False], ids=["unbuffered", "buffered"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["ops", "--json"],
        ["ops"],
        [*RUN, "--json"],
        [*RUN, "--export", "-", "--format", "trace"],
        [*RUN, "--export", "-", "--format", "html"],
        ["log", "-l", "200"],
        ["saved", "-l", "200", "--json"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_result_that_is_cut_off_ends_with_1(
    tmp_path: Path, arguments: list[str], unbuffered: bool
) -> None:
    pytest.importorskip("resource")
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, *arguments],
            stdout=out,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=tmp_path,
            env=environment(unbuffered),
        )
    assert (tmp_path / "out").stat().st_size == PIECE_BYTES, done.stderr
    assert (done.returncode, "Error: stdout cannot be written: " in done.stderr) == (1, True)


@needs_full
@pytest.mark.parametrize("unbuffered", [True, False], ids=["unbuffered", "buffered"])
@pytest.mark.parametrize("arguments", [["--version"], ["ops", "mul"]])
@pytest.mark.slow
def test_a_full_file_system_ends_with_1(arguments: list[str], unbuffered: bool) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(
            [*CKPT, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(unbuffered),
        )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")


@needs_full
@pytest.mark.parametrize(
    ("arguments", "code"), [(["run", "-l", "2", "-n", "16", "--reps", "2"], 0), (["rum"], 2)]
)
def test_a_full_stderr_changes_no_exit_code(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run([*CKPT, *arguments], stdout=subprocess.PIPE, stderr=full)
    assert (done.returncode, bool(done.stdout)) == (code, code == 0)


def test_without_proc_a_run_goes_on_and_says_what_it_does_not_check(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
import psutil
import ckptcli.measure.machine as machine
psutil.PROCFS_PATH = {str(tmp_path)!r}
machine.PROC = Path({str(tmp_path)!r})
machine._cgroup_bytes = lambda name: None
from ckptcli.cli.main import main
main(["log", "-l", "2", "-n", "16"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "the available memory is not known here" in done.stderr
    assert "retrieve_node_output" in done.stdout
