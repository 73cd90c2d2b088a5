"""The allocator's peak of a module beside the ledger's: what kernels take for themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ckptcli.report.glossary import define
from tests.backend_kit import NEEDS_TORCH
from tests.records import balanced_record, none_record, run_record
from tests.test_torch_blocks import CASES
from tests.torch_modules import profiled

FILE = """
import torch
from torch import nn


class Mean(nn.Module):
    def forward(self, x):
        return x.mean()


def products():
    return nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)), torch.rand(256, 64)


def depthwise():
    layers = (nn.Conv2d(16, 16, 3, padding=1, groups=16) for _ in range(2))
    return nn.Sequential(*layers, nn.ReLU(), Mean()), torch.rand(4, 16, 32, 32)


class Recurrent(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0].mean()


def recurrent():
    return Recurrent(32, 32, batch_first=True), torch.rand(4, 16, 32)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return str(path)


def test_kernel_scratch_is_the_workspace() -> None:
    assert define("kernel scratch")[0] == define("workspace_bytes")[0] == "workspace"


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("name", "has_scratch"), [("products", False), ("depthwise", True), ("recurrent", True)]
)
def test_the_peak_is_tensors_and_scratch(
    capsys: pytest.CaptureFixture[str], file: str, name: str, has_scratch: bool
) -> None:
    """Products take none."""
    command = (f"{file}:{name}", "-q", "--threads", "1", "-s", "none")
    (row,) = profiled(capsys, *command)["strategies"]
    assert row["peak_bytes"] == row["ledger_peak_bytes"] + row["workspace_bytes"]
    assert (row["workspace_bytes"] > 0.05 * row["peak_bytes"]) == has_scratch
    assert row["peak_live"]["total_bytes"] == row["ledger_peak_bytes"]
    if not has_scratch:
        assert row["workspace_bytes"] == 0


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("name", ["products", "depthwise", "recurrent"])
def test_the_figure_is_that_of_the_profiler(file: str, name: str) -> None:
    """PyTorch's own tracing profiler, over the whole pass at once."""
    from torch.profiler import ProfilerActivity, profile

    from ckptcli.peers.module_request import ModuleRequest
    from ckptcli.peers.torch_allocator import allocator_rises
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_module import ModuleNetwork

    network = ModuleNetwork(load_module(ModuleRequest(f"{file}:{name}"), 0), 0)
    network.backward(network.forward())
    found = allocator_rises(network)
    assert found is not None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        result = network.backward(network.forward())
    del result
    events = recorded.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    now_bytes = highest_bytes = 0
    for _, change_bytes in changes:
        now_bytes += change_bytes
        highest_bytes = max(highest_bytes, now_bytes)
    assert max(found.forward_bytes, found.backward_bytes) == highest_bytes


def test_what_is_worse_by_its_workspace_alone_says_so() -> None:
    none = none_record()
    assert none.memory is not None
    assert none.memory.peak_live is not None
    live = replace(none.memory.peak_live, module="layers.3")
    plain = replace(none.memory, peak_live=live)
    peak_bytes = 2 * (plain.peak_bytes or 0)
    more = replace(plain, traced_peak_backward_bytes=peak_bytes)
    judgements = []
    for memory in (more, replace(more, peak_live=none.memory.peak_live)):
        rows = (replace(none, memory=plain), replace(balanced_record(), memory=memory))
        judgements.append(run_record(rows=rows).rows[1].judgement)
    module, workload = (judgement.reason for judgement in judgements if judgement is not None)
    assert [j.word for j in judgements if j is not None] == ["worse", "worse"]
    assert "by its workspace" in module
    assert "the random state that each checkpoint of PyTorch keeps" in module
    assert "keeps the inputs of what it recomputes" in workload


@pytest.mark.slow
@NEEDS_TORCH
def test_checkpoints_keep_their_random_state(capsys: pytest.CaptureFixture[str]) -> None:
    """Which no op makes; without it there are some numbers as tensors."""
    import torch

    module = f"{CASES}/structures.py:decoder"
    none, remat = profiled(capsys, module, "-q", "--threads", "1")["strategies"]
    state_bytes = torch.get_rng_state().nbytes
    assert none["workspace_bytes"] < 1000 < state_bytes
    assert state_bytes <= remat["workspace_bytes"] <= 6 * state_bytes + 1000
