"""`ckpt saved --module`: what is alive after forward, to the byte of `ckpt run`, and its sums."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.module_saved import SUMS, ModuleSaved
from ckptcli.measure.saved_list import SavedList, SavedProgram, saved_object
from tests.backend_kit import NEEDS_TORCH
from tests.test_module_check import line_of, transformers_logs  # noqa: F401 - a fixture
from tests.test_torch_blocks import BLOCKS, CASES, LLAMA, NEEDS_TRANSFORMERS
from tests.torch_modules import profiled

SAVED = (
    ModuleSaved("l.0.a A", (), (2,), "float32", 8, "l.0.a", "A", "mm", "net.py:3", "x.py:1"),
    ModuleSaved("l.0.b B", (), (1,), "float32", 4, "l.0.b", "B", "mm", "", "x.py:2"),
    ModuleSaved("l.1.a A", (), (1,), "float32", 4, "l.1.a", "A", "exp", "net.py:3", "x.py:1"),
)


def listed(
    capsys: pytest.CaptureFixture[str], module: str, strategies: Sequence[str] = (), *more: str
) -> dict[str, Any]:
    named = [word for name in strategies for word in ("-s", name)]
    command = ["saved", "--engine", "torch", "--json", "-q", "--threads", "1", "--module", module]
    assert run_command([*command, *named, *more]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_sums_are_taken_by_path_to_a_depth_class_op_and_line() -> None:
    def sums(by: str, depth: int | None = None) -> list[tuple[str, int, int, float]]:
        totals = SavedList("none", SAVED).totals(by, depth)
        return [(total.key, total.tensors, total.bytes, total.share) for total in totals]

    assert [key for key, *_ in sums("module")] == ["l.0.a", "l.0.b", "l.1.a"]
    assert sums("module", 2) == [("l.0", 2, 12, 0.75), ("l.1", 1, 4, 0.25)]
    assert sums("module", 1) == [("l", 3, 16, 1.0)]
    assert sums("type") == [("A", 2, 12, 0.75), ("B", 1, 4, 0.25)]
    assert sums("op") == [("mm", 2, 12, 0.75), ("exp", 1, 4, 0.25)]
    assert sums("line") == [("net.py:3", 2, 12, 0.75), ("x.py:2", 1, 4, 0.25)]
    assert SavedList("none").totals("op") == []
    lists = [SavedList("framework", reason="none"), SavedList("remat", SAVED)]
    data = saved_object(SavedProgram("net.py:make", lists, SUMS, "module", as_it_is=lists[1]))
    assert (data["saved_bytes"], data["strategies"][0]["reason"]) == (16, "none")


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name",
    [
        *(f"structures.py:{name}" for name in (*BLOCKS, "collecting", "by_keyword")),
        *(f"repeated.py:{name}" for name in ("own", "own_reentrant", "encoder", "force")),
        "moving.py:dropping",
        "complex_weights.py:make",
    ],
)
def test_the_list_is_to_the_byte_what_a_run_says(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Under `none`, under checkpoints, and of a module that makes them itself."""
    names = ["none", "remat", *(["own"] if ":own" in name else [])]
    named = [word for strategy in names for word in ("-s", strategy)]
    rows = profiled(capsys, f"{CASES}/{name}", "-q", "--threads", "1", *named)["strategies"]
    found = listed(capsys, f"{CASES}/{name}", names)["strategies"]
    assert [held["strategy"] for held in found] == names
    for row, held in zip(rows, found):
        expected = (row["saved_tensors"], row["saved_bytes"])
        assert (held["saved_tensors"], held["saved_bytes"]) == expected, row["strategy"]
        for by in ("module", "type", "op", "line"):
            assert sum(total["bytes"] for total in held[f"by_{by}"]) == row["saved_bytes"]


@pytest.mark.slow
@NEEDS_TORCH
@NEEDS_TRANSFORMERS
@pytest.mark.parametrize("cached", [True, False])
def test_a_llama_is_listed_to_the_byte_too(
    transformers_logs: None,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    cached: bool,
) -> None:
    file = tmp_path / "llama.py"
    file.write_text(f"{LLAMA}\n\ndef one():\n    return make(use_cache={cached})\n")
    names = ["none", "remat", "framework"]
    named = [word for strategy in names for word in ("-s", strategy)]
    rows = profiled(capsys, f"{file}:one", "-q", "--threads", "1", *named)["strategies"]
    found = listed(capsys, f"{file}:one", names, "--depth", "3")["strategies"]
    assert [held["saved_bytes"] for held in found] == [row["saved_bytes"] for row in rows]
    layers = {total["key"] for total in found[0]["by_module"]}
    assert {f"model.layers.{i}" for i in range(4)} <= layers


@pytest.mark.slow
@NEEDS_TORCH
def test_each_storage_has_its_module_op_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The steps of the graph hold them, and of a checkpoint its arguments."""
    data = listed(capsys, f"{CASES}/structures.py:decoder", ["none", "remat"])
    none, remat = data["strategies"]
    assert data["saved_bytes"] == none["saved_bytes"]
    tanh = [saved for saved in none["saved"] if saved["op"] == "tanh"]
    assert [(s["path"], s["kind"]) for s in tanh] == [(f"layers.{i}", "Layer") for i in range(6)]
    line = line_of("structures.py", "self.down(torch.tanh(self.up(x)))")
    assert {saved["source"] for saved in tanh} == {line}
    assert all("TanhBackward0" in saved["ops"] for saved in tanh)
    assert all(saved["module"] == f"{saved['path']} {saved['kind']}" for saved in none["saved"])
    assert all(saved["ops"] for held in (none, remat) for saved in held["saved"])
    held = {op for saved in remat["saved"] for op in saved["ops"]}
    assert "checkpoint" in held


@pytest.mark.slow
@NEEDS_TORCH
def test_the_module_as_it_is_stands_there_without_a_strategy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No checkpoint computes anything again for the list."""
    own = listed(capsys, f"{CASES}/repeated.py:own")
    (held,) = own["strategies"]
    assert held["strategy"] == "own"
    (plain,) = listed(capsys, f"{CASES}/structures.py:decoder")["strategies"]
    assert plain["strategy"] == "none"
    command = ["saved", "--engine", "torch", "--module", f"{CASES}/structures.py:busy"]
    assert run_command([*command, "-s", "segments:1"]) == 0
    assert "segments:1: n/a: the module's own forward" in capsys.readouterr().out


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("by", "first"), [("module", "layers.0 "), ("type", "Layer"), ("op", "tanh"), ("line", ".py:")]
)
def test_sums_on_the_screen(capsys: pytest.CaptureFixture[str], by: str, first: str) -> None:
    module = f"{CASES}/structures.py:decoder"
    command = ["saved", "--engine", "torch", "--module", module, "--width", "200", "--by", by]
    assert run_command(command) == 0
    out = capsys.readouterr().out
    assert "share" in out
    assert f"by {by}" in out
    assert first.strip() in out
    if by == "module":
        assert run_command([*command, "--depth", "1"]) == 0
        rows = capsys.readouterr().out.splitlines()
        assert [row.split()[-1] for row in rows[-2:]] == ["layers", "embedding"]
