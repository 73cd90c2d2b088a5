"""The pages on engines: commands work, the module is one, tables are what a run says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.checkpoint.policies import parse_policy
from ckptcli.cli.main import run_command
from ckptcli.peers.base import engines
from tests.backend_kit import NEEDS_JAX, NEEDS_TORCH, skipped_without_its_engines

DOCS = Path(__file__).parent.parent / "docs"
ENGINES, JAX, TORCH = (
    (DOCS / f"{name}.md").read_text("utf-8") for name in ("engines", "jax", "pytorch")
)
COMMANDS = [
    line.removeprefix("$ ckpt ")
    for block in re.findall(r"```console\n(.*?)```", ENGINES + JAX, flags=re.S)
    for line in block.splitlines()
]

FAULTS, RULES, WINDOWS, PLAN = re.findall(r"```sh\n(.*?)```", JAX, flags=re.S)


@pytest.mark.slow
@pytest.mark.parametrize("command", skipped_without_its_engines(COMMANDS))
def test_every_command_works(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run_command([*shlex.split(command), "-q"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize("command", FAULTS.splitlines())
def test_the_figures_of_the_trg(command: str) -> None:
    """In a process of its own: what JAX traced before may stand in what it traces again.

    What is held and computed again is JAX's own; which gradient is wrong is the LAPACK's too.
    """
    words = shlex.split(command.removeprefix("ckpt "))
    where = "4, 0.44" if "0.44" in words else "6, 0.3"
    table = r"^\| `jax ([^`]*)`[^|]*\| {} \| within (\S+): \w+ \| ([0-9,]+) \| (.*) \|$"
    expected = re.findall(table.format(re.escape(where)), JAX, flags=re.M)
    arguments = [sys.executable, "-m", "ckptcli", *words, "--json", "-q"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    peers = json.loads(done.stdout)["peers"]
    assert [(p["strategy"], f"{p['memory']['saved_bytes']:,}") for p in peers] == [
        (strategy, saved) for strategy, _, saved, _ in expected
    ]
    for peer, (_, share, _, again) in zip(peers, expected):
        found = ", ".join(f"{n} {op}" for op, n in peer["recomputed_by_op"].items())
        assert (found or "nothing") == again
        assert peer["agreement"]["agrees"] or float(share) > 1e-12
    assert done.returncode == (0 if all(peer["agreement"]["agrees"] for peer in peers) else 5)


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
def test_the_table_of_names_is_what_the_commands_print(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = dict(re.findall(r"^\| ([psh]) \| (\d \| \d \| \d) \|$", JAX, flags=re.M))
    assert len(rows) == 3
    for name, row in rows.items():
        (command,) = [command for command in COMMANDS if f"names({name})" in command]
        assert run_command([*shlex.split(command), "--json", "-q"]) == 0
        peer = json.loads(capsys.readouterr().out)["peers"][-1]
        again = peer["recomputed_by_op"]
        figures = (peer["memory"]["saved_tensors"], again.get("matmul", 0), again.get("sigmoid", 0))
        assert " | ".join(map(str, figures)) == row


def test_the_page_has_every_engine() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \| [PtJ]", ENGINES, flags=re.M)) >= set(engines())


def test_the_policies_of_the_page_exist() -> None:
    named = re.findall(r"^\| `policy=([a-z_]+)", ENGINES, flags=re.M)
    assert len(named) == 8
    for name in named:
        arguments = {"save_from_both_policies": "(dots_saveable,nothing_saveable)"}
        default = "(p)" if "names" in name else ""
        assert callable(parse_policy(name + arguments.get(name, default)))


@pytest.mark.long
@pytest.mark.slow
@NEEDS_TORCH
def test_the_module_of_the_page_is_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program, *_ = re.findall(r"```python\n(.*?)```", TORCH, flags=re.S)
    (tmp_path / "net.py").write_text(program)
    commands = re.findall(r"^    ckpt (.* net\.py:make.*)$", TORCH, flags=re.M)
    assert len(commands) == 9
    for command in commands:
        assert run_command([*command.split(), "-q"]) == 0
        assert "net.py:make, Sequential with" in capsys.readouterr().out


def figures_of(command: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and rows of JAX, from a process of its own."""
    words = shlex.split(command.removeprefix("ckpt "))
    done = subprocess.run(
        [sys.executable, "-m", "ckptcli", *words, "--json", "-q"], capture_output=True, text=True
    )
    return done.returncode, json.loads(done.stdout)["peers"]


def held_and_again(peer: dict[str, Any]) -> tuple[str, str, str]:
    """What the tables have of a row that is the same on every machine."""
    again = ", ".join(f"{n} {op}" for op, n in peer["recomputed_by_op"].items())
    name = f"{peer['engine']} {peer['strategy']}"
    return name, f"{peer['memory']['saved_bytes']:,}", again or "nothing"


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize("command", RULES.splitlines())
def test_the_table_of_the_svds_rule(command: str) -> None:
    words = shlex.split(command)
    way, steps = (words[words.index(name) + 1] for name in ("--jax-svd", "--steps"))
    table = rf"^\| `(.*)` \| `{way}`, {steps} \| (.*) \| ([0-9,]+) \| (.*) \|$"
    expected = re.findall(table, JAX, flags=re.M)
    code, peers = figures_of(command)
    assert [held_and_again(peer) for peer in peers] == [
        (name, saved, again) for name, _, saved, again in expected
    ]
    for peer, (_, word, _, _) in zip(peers, expected):
        share = peer["agreement"]["gradient_relative"]
        if word == "nan":
            assert share is None  # not finite
        elif word != "agrees or nan":  # by how singular values that are equal are rounded
            assert peer["agreement"]["agrees"] or word.startswith("differs")
    assert code == (0 if all(peer["agreement"]["agrees"] for peer in peers) else 5)


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
def test_the_table_of_windows() -> None:
    (command,) = WINDOWS.splitlines()
    table = r"^\| `(jax [^`]+)`[^|]*\| (agrees|differs)[^|]*\| ([0-9,]+) \| ([^|]*) \|$"
    expected = re.findall(table, JAX, flags=re.M)
    code, peers = figures_of(command)
    assert [held_and_again(peer) for peer in peers] == [
        (name, saved, again) for name, _, saved, again in expected
    ]
    for peer, (_, word, _, _) in zip(peers, expected):
        assert peer["agreement"]["agrees"] or word == "differs"
    assert code == (0 if all(peer["agreement"]["agrees"] for peer in peers) else 5)


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
def test_the_table_of_the_plan() -> None:
    """What is held is JAX's own, and what XLA plans hardly depends on the machine; which gradient
    is wrong, and by how much, is the LAPACK's too.
    """
    (command,) = PLAN.splitlines()
    table = r"^\| `(jax\S* \w+)` \| ([0-9,]+) \| ([0-9.]+) MiB \|"
    expected = {row: (saved, float(mib)) for row, saved, mib in re.findall(table, JAX, flags=re.M)}
    code, peers = figures_of(command)
    rows = {f"{p['engine']} {p['strategy']}": p for p in peers}
    assert list(rows) == list(expected)
    for name, row in rows.items():
        saved, mib = expected[name]
        assert f"{row['memory']['saved_bytes']:,}" == saved
        assert row["memory"]["compiled_temp_bytes"] / 2**20 == pytest.approx(mib, rel=0.2)
        assert row["agreement"]["agrees"] or name.endswith("remat")
    assert code == (0 if all(row["agreement"]["agrees"] for row in rows.values()) else 5)


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
def test_the_table_of_the_loop(capsys: pytest.CaptureFixture[str]) -> None:
    table = r"^\| `([^`]+)` \| (\d+) \| (\d+), in (\d)[^|]*\| (\d) \|$"
    expected = {
        row: tuple(map(int, figures)) for row, *figures in re.findall(table, JAX, flags=re.M)
    }
    (command,) = [
        command for command in COMMANDS if "names=p --engine jax --engine jax-scan" in command
    ]
    assert run_command([*shlex.split(command), "--json", "-q"]) == 0
    peers = json.loads(capsys.readouterr().out)["peers"]
    tensor_bytes = 64 * 64 * 4
    found = {}
    for strategy in expected:
        written_out, loop = (p for p in peers if p["strategy"] == strategy)
        found[strategy] = (
            written_out["memory"]["saved_bytes"] // tensor_bytes,
            loop["memory"]["saved_bytes"] // tensor_bytes,
            loop["memory"]["saved_tensors"],
            loop["recomputed_by_op"].get("matmul", 0),
        )
    assert found == expected
    assert len(found) == 4
