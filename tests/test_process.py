"""The real command in a process of its own: what a call in this process cannot see."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ckptcli.cli.main import COMMANDS
from tests.test_endings import ENDLESS, start, wait_for

ROOT = Path(__file__).parent.parent
CKPT = [sys.executable, "-m", "ckptcli"]
COMPLETION = {"_CKPT_COMPLETE": "bash_complete", "COMP_WORDS": "ckpt run -s bal", "COMP_CWORD": "3"}


def run(
    *arguments: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CKPT, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        cwd=cwd,
        env={**os.environ, **variables},
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], *([command, "--help"] for command in COMMANDS)]
)
def test_help_and_version_load_no_array_library(arguments: list[str]) -> None:
    """Nor a part of our own that a help text has no need of."""
    program = (
        "import sys\n"
        "from ckptcli.cli.main import run_command\n"
        f"code = run_command({arguments!r})\n"
        "parts = 'checkpoint workloads peers report profiling measure config autodiff'.split()\n"
        "heavy = {'numpy', 'rich', 'psutil', 'threadpoolctl', 'ckptcli.backends.registry',\n"
        "         *(f'ckptcli.{part}' for part in parts)} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def loaded(*arguments: str) -> set[str]:
    """The modules of ours that a command loads in a fresh interpreter."""
    program = (
        "import contextlib, io, sys\n"
        "from ckptcli.cli.main import run_command\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    code = run_command({list(arguments)!r})\n"
        "print(*(name for name in sys.modules if name.startswith('ckptcli.')))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


ROOMS = ("traced", "peers.", "verify.check", "verify.differences", "workloads.trg")
SILU = ("--workload", "silu", "--layers", "1", "--n", "8")


@pytest.mark.parametrize("arguments", [("run", *SILU, "--reps", "1"), ("log", *SILU)])
def test_the_silu_network_enters_no_room_but_its_own(arguments: tuple[str, ...]) -> None:
    modules = loaded(*arguments)
    rooms = tuple(f"ckptcli.{room}" for room in (*ROOMS, "workloads.chain", "workloads.graph"))
    assert sorted(name for name in modules if name.startswith(rooms)) == []
    assert "ckptcli.workloads.silu" in modules


@pytest.mark.parametrize(
    ("workload", "room"), [("trg", "ckptcli.workloads.trg"), ("silu", "ckptcli.workloads.silu")]
)
@pytest.mark.slow
def test_a_workload_loads_its_own_file_alone(workload: str, room: str) -> None:
    sizes = ("--steps", "1", "--chi", "2") if workload == "trg" else SILU[2:]
    modules = loaded("log", "--workload", workload, *sizes)
    others = {f"ckptcli.workloads.{name}" for name in ("trg", "silu", "chain", "graph", "program")}
    assert modules & others == {room}


def test_a_strategy_is_loaded_from_the_file_of_its_name() -> None:
    rooms = {f"ckptcli.checkpoint.strategies.{name}" for name in ("remat", "sqrt")}
    assert not rooms & loaded("log", *SILU, "-s", "balanced")
    assert rooms & loaded("log", *SILU, "-s", "sqrt") == {"ckptcli.checkpoint.strategies.sqrt"}


@pytest.mark.slow
def test_the_installed_command_is_the_module() -> None:
    script = Path(sys.executable).with_name("ckpt")
    if not script.exists():
        pytest.skip("ckpt is not installed beside this Python")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == run("--version").stdout


def test_completion_of_a_strategy_name() -> None:
    done = run(**COMPLETION)
    script = Path(sys.executable).with_name("ckpt")
    if script.exists():
        done = subprocess.run(
            [script],
            capture_output=True,
            text=True,
            env={**os.environ, **COMPLETION},
        )
    assert done.stdout.strip().endswith("balanced")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--help",),
        ("--version",),
        ("run", "--help"),
        ("log",),
        ("run", "-q", "--n", "16", "--reps", "1"),
        ("run", "-q", "--n", "16", "--json"),
    ],
)
def test_a_closed_pipe_ends_quietly(arguments: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        [*CKPT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **({} if arguments else COMPLETION)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), errors) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("rum",), ("log", "-s", "nobody")])
def test_an_error_that_nobody_reads_keeps_its_exit_code(arguments: tuple[str, ...]) -> None:
    process = subprocess.Popen([*CKPT, *arguments], stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait(60) == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell that can close a stream")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(
    ("arguments", "code"), [("log", 0), ("run --n 16 --reps 1", 0), ("--help", 0), ("rum", 2)]
)
def test_a_stream_that_is_closed_from_the_start(arguments: str, code: int, closed: str) -> None:
    line = f'exec "{sys.executable}" -m ckptcli {arguments} {closed}'
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert closed != "2>&-" or bool(done.stdout) == (code == 0)


@pytest.mark.slow
def test_an_interrupted_run_prints_what_it_has_and_says_so(tmp_path: Path) -> None:
    process = start(*ENDLESS, "--export", "run.json", cwd=tmp_path)
    wait_for(tmp_path / "run.json")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(r"reps 1\.\.\d+: median forward", out)
    assert re.search(r"\d+ rounds?\s+interleaved;\s+stopped: interrupted;\s+partial", out)
    assert "interrupted: the figures are partial" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_full_disk_is_an_error_of_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*CKPT, "log"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: stdout cannot be written: ")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_an_ascii_stdout_gets_ascii() -> None:
    done = run("run", "--n", "16", "--layers", "2", "--reps", "1", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


@pytest.mark.slow
def test_threads_without_threadpoolctl(tmp_path: Path) -> None:
    done = without_threadpoolctl(tmp_path, "run", "--reps", "1", "--json")
    assert IN_TIME in done.stderr
    assert '"blas_threads": null' in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "saved", "log"])
def test_threads_are_set_before_numpy_is_loaded(tmp_path: Path, command: str) -> None:
    assert IN_TIME in without_threadpoolctl(tmp_path, command).stderr


IN_TIME = "warning: --threads 1 does not reach the BLAS itself"
"""What is told where the variables are set before NumPy reads them; else it says: has no effect."""


def without_threadpoolctl(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What the command prints where threadpoolctl cannot be imported."""
    (directory / "threadpoolctl.py").write_text("raise ImportError('not here')\n")
    done = run(*command, "--n", "8", "--layers", "1", "--threads", "1", PYTHONPATH=str(directory))
    assert done.returncode == 0
    return done


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    sorted(p for p in (ROOT / "configs").glob("*.toml") if not p.name.startswith("seed-")),
    ids=lambda p: p.stem,
)
def test_every_ready_configuration_works(path: Path, tmp_path: Path) -> None:
    done = run("log", "--config", str(path), cwd=tmp_path)
    assert done.returncode == 0
    assert "retrieve_node_output" in done.stdout
    done = run("run", "--n", "16", "--reps", "1", "--config", str(path), cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.slow
def test_the_example_configuration_works(tmp_path: Path) -> None:
    (tmp_path / "burn.toml").write_text((ROOT / "burn.toml.example").read_text())
    assert run("log", cwd=tmp_path).returncode == 0


def readme_commands() -> list[str]:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ckpt ")]


@pytest.mark.slow
@pytest.mark.parametrize("command", readme_commands())
def test_every_command_of_the_readme_works(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m ckptcli {command.removeprefix('ckpt ')}",
        shell=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, "CKPT_REPS": "3"},  # where none are named: that it works is asked
        timeout=300,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert done.stdout


def test_the_readme_shows_commands() -> None:
    assert len(readme_commands()) >= 4


INTERRUPTED_LOADING = """
import runpy, sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder())
sys.argv = ["ckpt", "log"]
runpy.run_module("ckptcli", run_name="__main__")
"""


def test_an_interrupt_while_the_command_is_loaded_ends_quietly() -> None:
    words = [sys.executable, "-c", INTERRUPTED_LOADING]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted\n")
