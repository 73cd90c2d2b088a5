"""Rows that PyTorch itself offers beside checkpoints: selective by op, on the host, compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.peers.module_strategies import module_strategies
from tests.backend_kit import NEEDS_TORCH
from tests.test_torch_blocks import Judged, judged

__all__ = ["judged"]

FILE = """
import torch
from torch import nn


def make():
    torch.manual_seed(3)
    blocks = [nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(4)]
    return nn.Sequential(*blocks), torch.rand(128, 32)


def drops():
    module, x = make()
    return nn.Sequential(module, nn.Dropout(0.5)), x
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(FILE)
    return f"{tmp_path / 'net.py'}:make"


def test_ops_and_what_groups_blocks_are_read() -> None:
    _, strategy = module_strategies(["selective:mm+*attention*,every=2"])
    assert list(strategy.saved_ops) == ["mm", "*attention*"]
    assert strategy.grouping is not None
    assert strategy.grouping.name == "remat:every=2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("selective", "names no ops of PyTorch"),
        ("selective:mm+", "names no ops of PyTorch"),
        ("selective:aten.mm", "names no ops of PyTorch"),
        ("offload:2", "takes no arguments, got `2`"),
        ("compile:", "names no budget from 0 to 1"),
        ("compile:0.5", "names no budget from 0 to 1"),
        ("compile:budget=2", "names no budget from 0 to 1"),
        ("compile:budget=half", "names no budget from 0 to 1"),
    ],
)
def test_what_stands_for_no_row_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        module_strategies([text])


def test_rows_of_modules_are_meant_where_a_name_is_misspelt() -> None:
    with pytest.raises(UnknownNameError, match="unknown strategy `compil`") as told:
        module_strategies(["compil:budget=0.5"])
    assert told.value.hint == "did you mean `compile`?"


def test_a_budget_is_read() -> None:
    budgets = [module_strategies([text])[1].budget for text in ("compile", "compile:budget=0.25")]
    assert budgets == [None, 0.25]


@pytest.mark.slow
@NEEDS_TORCH
def test_ops_that_are_saved_are_held_and_no_others(judged: Judged, module: str) -> None:
    """A region holds its input, which is what the one before gives, and each product's output."""
    ops, groups = "selective:addmm", "selective:addmm,every=2"
    code, rows, _ = judged(module, "-s", "remat", "-s", ops, "-s", groups, "-s", "selective:admm")
    assert code == 0
    wide, narrow = 128 * 64 * 4, 128 * 32 * 4
    assert rows["remat"]["saved_bytes"] == 3 * narrow
    assert rows[ops]["saved_bytes"] == 4 * wide + 4 * narrow  # the last product's output too
    assert rows[groups]["saved_bytes"] == rows[ops]["saved_bytes"]
    assert rows[groups]["regions"] == [["0", "1"], ["2", "3"]]
    for name in ("remat", ops, groups):
        assert rows[name]["agreement"]["gradient_ulp"] == 0.0
    assert rows["selective:admm"]["reason"] == (
        "PyTorch has no op aten.admm; did you mean `addmm`?"
    )


@pytest.mark.slow
@NEEDS_TORCH
def test_a_budget_names_the_command_that_plans_blocks(judged: Judged, module: str) -> None:
    code, rows, _ = judged(module, "-s", "budget:1MiB")
    assert code == 0
    assert f"`ckpt plan --module {module} --budget SIZE` says" in rows["budget:1MiB"]["reason"]


@pytest.mark.slow
@NEEDS_TORCH
def test_what_would_be_on_the_host_is_told(judged: Judged, module: str) -> None:
    """Of a layer its input and weight, of a GELU its input; a CPU has it there already."""
    code, rows, _ = judged(module, "-s", "offload")
    activations = 128 * 4 * (4 * 32 + 2 * 4 * 64)
    weights = (4 * 2 - 1) * 32 * 64 * 4  # the input needs no gradient, nor so the first weight
    assert code == 0
    assert (
        f"would hold {(activations + weights) / 1024:.1f} KiB on the host"
        in rows["offload"]["reason"]
    )
    assert rows["offload"]["reason"].startswith("on a CPU nothing is moved to the host")


def as_it_is(self: Any, graph: Any, inputs: Any) -> Any:
    """In place of the compiler."""
    self.graphs += 1
    return graph.forward


def user_of(module: str) -> Any:
    from ckptcli.peers.module_request import ModuleRequest
    from ckptcli.peers.torch_loading import load_module

    return load_module(ModuleRequest(module), 0)


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("name", ["make", "drops"])
def test_what_no_mode_watches_is_the_account_of_the_modes(
    monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    """Where Dynamo hands the ops on as they are, the graph and the allocator tell the same."""
    from ckptcli.peers.torch_compiled import CompiledNetwork
    from ckptcli.peers.torch_memory import module_pass
    from ckptcli.peers.torch_module import ModuleNetwork

    monkeypatch.setattr(CompiledNetwork, "_compiled", as_it_is)
    user = user_of(module.replace(":make", f":{name}"))
    network = CompiledNetwork(user, 0, None)
    known, found = module_pass(ModuleNetwork(user, 0)).memory, module_pass(network).memory
    assert network.graphs == 1
    for figure in ("saved_bytes", "saved_tensors", "params_input_bytes"):
        assert getattr(found, figure) == getattr(known, figure)
    assert known.peak_bytes == found.peak_bytes
    assert found.workspace_bytes is found.ledger_peak_bytes is found.peak_live is None


@pytest.mark.slow
@NEEDS_TORCH
def test_what_does_not_compile_is_a_row_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, judged: Judged, module: str
) -> None:
    from ckptcli.peers.torch_compiled import CompiledNetwork

    def fails(self: Any, graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no C++ compiler\nis here")

    monkeypatch.setattr(CompiledNetwork, "_compiled", fails)
    code, rows, _ = judged(module, "-s", "compile")
    assert code == 0
    assert rows["compile"]["reason"].startswith("torch.compile fails: BackendCompilerFailed")


@pytest.mark.slow
@NEEDS_TORCH
def test_shapes_and_checks_take_nothing_that_is_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    from ckptcli.peers.torch_compiled import CompiledNetwork

    monkeypatch.setattr(CompiledNetwork, "_compiled", as_it_is)
    words = ("--module", module, "-s", "compile", "-q")
    for command, code in ((["check"], 0), (["saved"], 0)):
        assert run_command([*command, *words]) == code
        assert "would have it run op by op" in capsys.readouterr().out
    assert run_command(["run", "--fake", *words]) == 0
    assert "compile: n/a: shapes alone are not compiled" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.filterwarnings("ignore")
def test_a_budget_decides_what_a_compiled_module_holds(judged: Judged, module: str) -> None:
    """With Inductor, which needs a C++ compiler; dropout draws as without, and but once."""
    names = ["compile", "compile:budget=0.5", "compile:budget=0"]
    for name in ("make", "drops"):
        words = [word for strategy in names for word in ("-s", strategy)]
        code, rows, _ = judged(module.replace(":make", f":{name}"), *words)
        assert code == 0
        if name == "drops":
            *names, last = names
            assert rows[last]["reason"].startswith("torch.compile fails: ")
        held = [rows[strategy]["saved_bytes"] for strategy in names]
        assert held == sorted(set(held), reverse=True)
        for strategy in names:
            assert rows[strategy]["agreement"]["agrees"]
            assert rows[strategy]["compile_s"] > 0
            assert rows[strategy]["counterpart"].startswith("torch.compile, 1 graph of the module")
            assert rows[strategy]["total_s"]["samples"]


@pytest.mark.long
@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.filterwarnings("ignore")
def test_what_is_compiled_stays_so_beside_rows_that_are_watched(module: str) -> None:
    from ckptcli.peers.torch_compiled import CompiledNetwork
    from ckptcli.peers.torch_graph import held_by_steps
    from ckptcli.peers.torch_memory import module_pass
    from ckptcli.peers.torch_module import ModuleNetwork

    user = user_of(module)
    network = CompiledNetwork(user, 0, 0.0)
    module_pass(ModuleNetwork(user, 0))
    loss = network.forward()
    holders = {name for names in held_by_steps([loss.grad_fn]).values() for name in names}
    assert "CompiledFunctionBackward" in holders
    assert network.graphs == 1
