"""The programs under `examples/`, with the commands that the page about them shows."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "your-own-model.md"
PROGRAMS = ("mlp.py:make", "transformer.py:Model", "recurrent.py:make", "recurrent.py:marked")
CKPT = [sys.executable, "-m", "ckptcli"]
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
"""Threads of a BLAS wait for each other where other programs take the cores."""


def ckpt(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*CKPT, *arguments],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env=ONE_THREAD,
        timeout=300,
    )
    assert "Traceback" not in done.stderr
    return done


def example(command: str, program: str, *arguments: str) -> str:
    done = ckpt(command, "--workload", f"examples/{program}", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_run(program: str) -> None:
    strategies = ["none", "balanced", *([] if "marked" in program else ["remat", "sqrt"])]
    options = [word for name in strategies for word in ("-s", name)]
    record = json.loads(example("run", program, *options, "--reps", "3", "--json"))
    assert record["workload"]["title"] == f"program = examples/{program}"
    figures = {each["strategy"]: each for each in record["strategies"]}
    assert list(figures) == strategies
    assert len({each["grad_sha256"] for each in figures.values()}) == 1
    assert len({each["loss"] for each in figures.values()}) == 1
    if "remat" in figures:
        assert figures["remat"]["saved_bytes"] < figures["none"]["saved_bytes"]
        assert figures["remat"]["judgement"]["word"] == "effective"


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_log(program: str) -> None:
    logged = json.loads(example("log", program, "--json"))
    assert logged["log"][0].startswith("retrieve_node_output NodeId")
    names = {"mlp": "weights[0]", "transformer": "blocks[0].first_norm"}
    first = names.get(program.partition(".")[0], "cell.w_gate")
    assert next(iter(logged["gradients"])).endswith(first)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_check(program: str) -> None:
    strategies = ["-s", "balanced", *([] if "marked" in program else ["-s", "sqrt"])]
    (found,) = [
        json.loads(line) for line in example("check", program, *strategies, "--json").splitlines()
    ]
    for each in found["checks"]:
        assert each["passed"]
        assert each["compared"] > 0
        assert each["usable_directions"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_saved(program: str) -> None:
    found = json.loads(example("saved", program, "--json"))
    none = next(each for each in found["strategies"] if each["strategy"] == "none")
    assert none["saved_tensors"] == len(none["saved"]) > 0
    file = program.partition(":")[0]
    assert all(held["source"].startswith(f"examples/{file}:") for held in none["saved"])


@pytest.mark.slow
def test_a_region_saves_what_the_strategy_with_its_policy_saves() -> None:
    """`marked` has the regions of `make` under `remat:names=product`."""
    marked = json.loads(example("saved", "recurrent.py:marked", "-s", "none", "--json"))
    named = json.loads(example("saved", "recurrent.py:make", "-s", "remat:names=product", "--json"))
    (one,), (other,) = marked["strategies"], named["strategies"]
    assert one["saved_bytes"] == other["saved_bytes"]
    assert one["saved_tensors"] == other["saved_tensors"]


def shown() -> list[tuple[str, str]]:
    """Each command of the page, with the output that stands under it ("" for none)."""
    blocks = re.findall(
        r"```console\n\$ ckpt ([^\n]*)\n```(?:\n\n```text\n(.*?)```)?", PAGE.read_text(), flags=re.S
    )
    assert blocks
    return blocks


@pytest.mark.slow
@pytest.mark.parametrize(("command", "output"), shown())
def test_the_page_shows_what_the_commands_print(command: str, output: str) -> None:
    """What is shown is a part of what is printed, line by line, what `masked` drops aside."""
    done = ckpt(*command.split())
    assert done.returncode == 0
    printed = iter([masked(line) for line in done.stdout.splitlines()])
    for line in output.splitlines():
        if line.strip() != "...":
            assert masked(line) in printed, line


def masked(line: str) -> str:
    """Times, ratios and the verdicts on them, peaks, and the width of columns, left out.

    A peak has temporaries of the array library in it, which differ between its versions.
    """
    line = re.sub(r"\s+|─+", " ", line).strip()
    line = re.sub(r"^(\w+ \d+\.\d+ [KM]iB) \d+\.\d+ [KM]iB", r"\1 PEAK", line)
    return re.sub(r"\d+(\.\d+)?(ms|µs|s)\b|\d+\.\d+x \w+", "T", line)


def test_the_page_shows_the_files() -> None:
    text = PAGE.read_text()
    assert (ROOT / "examples/mlp.py").read_text().strip() in text
    for program in PROGRAMS:
        assert f"examples/{program}" in text


ENDLESS = """
def make(device):
    w = device.tensor([1.0]).require_grad()
    def loss():
        print("begun", flush=True)
        while True:
            pass
    return loss
"""


@pytest.mark.slow
def test_an_endless_loss_is_ended_by_the_timeout(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ENDLESS)
    done = ckpt("run", "--workload", "mine.py:make", "--timeout", "0.5", cwd=tmp_path)
    assert done.returncode == 124
    assert "--timeout 0.5 s: stopped before anything was measured" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "log", "check", "saved"])
def test_an_endless_loss_can_be_interrupted(tmp_path: Path, command: str) -> None:
    (tmp_path / "mine.py").write_text(ENDLESS)
    process = subprocess.Popen(
        [*CKPT, command, "--workload", "mine.py:make"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "begun\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


@pytest.mark.slow
def test_an_interrupt_that_the_program_raises_is_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise KeyboardInterrupt\n")
    done = ckpt("log", "--workload", "mine.py:make", cwd=tmp_path)
    assert done.returncode == 130


@pytest.mark.slow
def test_over_processes(tmp_path: Path) -> None:
    arguments = ("--processes", "2", "--reps", "4", "--json", "--dtype", "float64")
    record = json.loads(example("run", "recurrent.py:make", *arguments))
    assert record["processes"] == 2
    assert record["workload"]["dtype"] == "float64"
