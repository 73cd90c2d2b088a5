"""`ckpt saved`: what is held after forward, its line, its consumers, its end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.measure.saved import SavedTensor, saved_tensors
from ckptcli.profiling.memory_pass import MemoryPass, memory_pass
from ckptcli.workloads.base import Workload
from ckptcli.workloads.graph import read_graph_file
from ckptcli.workloads.silu import SiluWorkload


def run(workload: Workload, strategy: str) -> tuple[MemoryPass, list[SavedTensor]]:
    measured = memory_pass(workload, device(), parse_strategy(strategy), workspace=False)
    return measured, saved_tensors(measured.trace)


@pytest.mark.parametrize(
    "strategy", ["none", "balanced", "remat", "remat:every=2,policy=dots_saveable", "sqrt"]
)
def test_the_list_is_the_ledgers_to_the_byte(strategy: str) -> None:
    measured, saved = run(SiluWorkload(layers=6, n=16), strategy)
    assert len(saved) == measured.memory.saved_tensors
    assert sum(tensor.bytes for tensor in saved) == measured.memory.saved_bytes


def test_each_entry_names_line_consumers_and_end() -> None:
    _, saved = run(SiluWorkload(layers=2, n=16), "balanced")
    first, second = saved
    assert (first.node, first.op, first.dtype) == (3, "matmul", "float32")
    assert first.source.startswith("ckptcli/workloads/silu.py:")
    assert first.consumers == (
        "5 (mul)",
        "4 (sigmoid)",
        "the recomputation of 4",
        "the recomputation of 5",
    )
    assert first.freed_at == "backward of 4 (sigmoid)"
    assert second.freed_at == "backward of 7 (sigmoid)"


def test_what_an_op_keeps_aside_is_listed(tmp_path: Path) -> None:
    program = {
        "ops": [
            {"op": "leaf", "req": True, "data": [[1, 2, 3], [4, 5, 6]]},
            {"op": "max_dim", "in": [0], "dim": 1},
            {"op": "sum", "in": [1]},
        ]
    }
    (tmp_path / "g.json").write_text(json.dumps(program))
    (case,) = read_graph_file(str(tmp_path / "g.json"))
    measured, saved = run(case, "none")
    assert [tensor.why for tensor in saved] == ["kept aside by max_dim for its own backward step"]
    assert sum(tensor.bytes for tensor in saved) == measured.memory.saved_bytes == 16


def test_a_backup_that_nobody_needs_is_called_that(tmp_path: Path) -> None:
    """sum(x @ w + w @ x): `balanced` holds both products, `none` holds neither."""
    leaf = {"op": "leaf", "req": True, "data": [1, 2, 3, 4]}
    ops = [
        leaf,
        leaf,
        {"op": "matmul", "in": [0, 1]},
        {"op": "matmul", "in": [1, 0]},
        {"op": "add", "in": [2, 3]},
        {"op": "sum", "in": [4]},
    ]
    (tmp_path / "g.json").write_text(json.dumps({"ops": ops}))
    (case,) = read_graph_file(str(tmp_path / "g.json"))
    assert run(case, "none")[1] == []
    assert [tensor.why for tensor in run(case, "balanced")[1]] == [
        "a backup that no recomputation turned out to need"
    ] * 2


def test_the_command_prints_tables_or_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["saved", "-q"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("n = 64, layers = 2\n\nnone: 5 tensors, 80.0 KiB held")
    assert "balanced: 2 tensors, 32.0 KiB held" in text
    assert run_command(["saved", "-q", "-s", "remat:every=2", "--layers", "4", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "ckpt.saved/1"
    (strategy,) = data["strategies"]
    assert (strategy["saved_tensors"], strategy["saved_bytes"]) == (1, 64 * 64 * 4)


@pytest.mark.parametrize("width", [40, 50, 60, 80, 120])
def test_heads_of_the_table_stand_whole(capsys: pytest.CaptureFixture[str], width: int) -> None:
    assert run_command(["saved", "-l", "2", "-n", "32", "-s", "none", "--width", str(width)]) == 0
    _, _, _, _, head, *rest = capsys.readouterr().out.splitlines()
    heads = ["node", "size", "op", "name", "shape", "made at", "freed after", "why"]
    shown = re.split(r" {2,}", head.strip())
    assert shown == heads[: len(shown)]
    assert len(shown) >= 4
    assert max(map(len, [head, *rest])) <= width
    if width >= 100:
        assert "ckptcli/workloads/silu.py:" in "\n".join(rest)


def test_a_program_without_gradients_is_told_in_a_warning_of_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ops = [{"op": "leaf", "req": False, "data": [1.0]}, {"op": "sin", "in": [0]}]
    (tmp_path / "g.json").write_text(json.dumps({"ops": ops, "root": 1}))
    assert run_command(["saved", "-s", "none", "--workload", f"graph:{tmp_path / 'g.json'}"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(" gives ")[0] for line in told] == [
        "warning: backward() on node 1 (`sin`)"
    ]
