"""docs/policies.md: its commands work, its program runs, its table is what is measured."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ckptcli.checkpoint.policies import parse_policy
from ckptcli.cli.main import run_command
from tests.test_docs import blocks
from tests.test_region_counts import silu_pass

PAGE = "docs/policies.md"
TEXT = (Path(__file__).parents[1] / PAGE).read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ ckpt ")
    for block in blocks(PAGE, "console")
    for line in block.splitlines()
    if line.startswith("$ ckpt ")
]


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_works(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(shlex.split(line)) == 0
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_last_command_warns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(shlex.split(COMMANDS[-1])) == 0
    err = capsys.readouterr().err
    assert "spares 4 mul" in err
    assert "name `residual` matches no value" in err


@pytest.mark.slow
def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program, _ = blocks(PAGE, "python")
    exec(compile(program, PAGE, "exec"), {})
    assert capsys.readouterr().out.startswith("[[")


def test_the_policy_and_the_strategy_of_ones_own_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, mine = blocks(PAGE, "python")
    (tmp_path / "mine.py").write_text(mine)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    ckpt (run -s .*mine\.py.*)$", TEXT, flags=re.M)
    assert len(commands) == 3
    for command in commands:
        small = ["-l", "4", "-n", "8", "--reps", "1", "-q"]
        assert run_command([*shlex.split(command), *small]) == 0


ROWS = re.findall(
    r"^\| `(none|remat[^`]*)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", TEXT, flags=re.M
)


def test_the_table_has_its_rows() -> None:
    assert len(ROWS) == 6


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_table_is_what_is_measured(row: tuple[str, ...]) -> None:
    strategy, *figures = row
    found = silu_pass(strategy)
    again = [found.outcome.recomputed_by_op.get(op, 0) for op in ("matmul", "sigmoid", "mul")]
    assert [found.memory.saved_tensors, *again] == [int(figure) for figure in figures]


def test_every_policy_of_the_table_is_one() -> None:
    names = re.findall(r"^\| `(\w+(?:able|dims|names|these|policies)[^`]*)` \|", TEXT, flags=re.M)
    assert len(names) == 10
    for name in names:
        if "P,Q" not in name:
            parse_policy(name.replace("\\|", "|"))
