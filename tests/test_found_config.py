"""What a burn.toml may do that nobody named: set figures, and neither run code nor write files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CKPT = [sys.executable, "-m", "ckptcli"]
SMALL = "layers = 2\nn = 8\nreps = 2\n"
PROGRAM = """
from pathlib import Path
Path("ran").touch()
def make(device):
    w = device.tensor([1.0]).require_grad()
    return lambda: w * w
def policy(prim, *_, **__):
    return True
"""


def ckpt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CKPT, *arguments], capture_output=True, encoding="utf-8", cwd=folder, timeout=60
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder two below one whose burn.toml is found."""
    below = tmp_path / "theirs" / "a" / "b"
    below.mkdir(parents=True)
    (below / "net.py").write_text(PROGRAM)
    return below


def found(folder: Path, text: str) -> Path:
    path = folder.parents[1] / "burn.toml"
    path.write_text(text)
    return path


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "line",
    [
        'workload = "net.py:make"',
        'strategy = "remat:policy=net.py:policy"',
        'strategy = ["none", "net.py:make"]',
        'module = "net.py:make"',
        'workload = "net.py"',
    ],
)
def test_it_runs_no_code_and_the_command_goes_on(folder: Path, line: str) -> None:
    path = found(folder, f"[ckpt]\n{SMALL}{line}\nquiet = true\n")
    done = ckpt(folder, "saved")
    assert done.returncode == 0, done.stderr
    assert not (folder / "ran").exists()
    key = line.partition(" ")[0]
    assert f"`ckpt.{key}` is " in done.stderr
    assert f"use --config {path} to apply it" in done.stderr


def test_named_it_runs_code(folder: Path) -> None:
    path = found(folder, '[ckpt]\nworkload = "net.py:make"\n')
    done = ckpt(folder, "log", "--config", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "ran").exists()


@pytest.mark.slow
def test_it_overwrites_nothing_and_writes_no_export(folder: Path) -> None:
    (folder / "run.csv").write_text("precious")
    found(folder, f'[ckpt]\n{SMALL}export = ["run.csv", "new.csv"]\nforce = true\n')
    done = ckpt(folder, "run")
    assert done.returncode == 0
    assert (folder / "run.csv").read_text() == "precious"
    assert not (folder / "new.csv").exists()
    assert "`ckpt.export` is an array" in done.stderr
    assert "`ckpt.force` is true" in done.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "is_written"),
    [
        ("../../../victim", False),
        ("{top}/victim", False),
        ("link/victim", False),
        ("own.log", True),
        ("../own.log", True),
        ("new/own.log", True),
    ],
)
def test_its_log_file_stays_beside_or_below_it(folder: Path, name: str, is_written: bool) -> None:
    top = folder.parents[2]
    (top / "victim").write_text("precious")
    (folder / "link").symlink_to(top)
    file = name.format(top=top)
    found(folder, f'[autodiff.logger]\nlevel = "full"\nappend = false\nfile = "{file}"\n')
    done = ckpt(folder, "log", "-l", "1", "-n", "4")
    assert done.returncode == 0
    assert (top / "victim").read_text() == "precious"
    assert (folder / file).exists()
    assert ((folder / file).read_text().startswith("retrieve_node_output")) == is_written
    assert ("`autodiff.logger.file` is " in done.stderr) != is_written


@pytest.mark.slow
def test_what_it_sets_is_told_unless_the_caller_is_quiet(folder: Path) -> None:
    path = found(folder, f"[ckpt]\n{SMALL}quiet = true\n")
    told = f"note: {path} sets layers, n, quiet\n"
    assert ckpt(folder, "log").stderr == told
    assert ckpt(folder, "log", "-q").stderr == ""
    assert ckpt(folder, "log", "--config", str(path)).stderr == ""
    assert ckpt(folder, "log", "-l", "1", "-n", "4").stderr == f"note: {path} sets quiet\n"


def test_a_named_pipe_is_passed_over(folder: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(folder / "burn.toml")
    found(folder, "[ckpt]\nlayers = 3\n")
    assert "sets layers" in ckpt(folder, "log", "-n", "4").stderr
