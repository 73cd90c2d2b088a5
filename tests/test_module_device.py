"""A module on a GPU, with stand-ins for PyTorch's CUDA: figures by phase, and a clock of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.memory import AllocatorPeak
from ckptcli.report.readings import allocator_text
from tests.backend_kit import NEEDS_TORCH

FILE = """
import torch
from torch import nn


def make():
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)), torch.rand(16, 8)


def apart():
    module, x = make()
    return module, (x, torch.rand(2, device="meta"))
"""
LARGE = 1 << 20


class Event:
    """Each is half a millisecond after the last."""

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, stream: Any) -> None: ...

    def synchronize(self) -> None: ...

    def elapsed_time(self, other: Any) -> float:
        return 0.5


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The module is said to be on `cuda:0`; what is asked of the device, in order."""
    import torch

    from ckptcli.peers.torch_module import UserModule

    calls: list[str] = []
    requested = iter(range(LARGE, 100 * LARGE, LARGE))

    def statistics(device: Any) -> dict[str, int]:
        calls.append("memory_stats")
        now = next(requested)
        return {
            "requested_bytes.all.peak": now,
            "allocated_bytes.all.peak": now + 100,
            "reserved_bytes.all.peak": now + 1124,
        }

    for name in ("synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda device, name=name: calls.append(name))
    monkeypatch.setattr(torch.cuda, "memory_stats", statistics)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(UserModule, "device", torch.device("cuda:0"))
    return calls


def test_what_is_reserved_beyond_blocks_is_told() -> None:
    told = allocator_text(AllocatorPeak(1024, 2048, 4096))
    assert told.endswith("reserved 4.0 KiB, 2.0 KiB of it in no block")
    assert allocator_text(AllocatorPeak(1024, 2048, None)).endswith("reserved n/a")


@pytest.mark.slow
@NEEDS_TORCH
def test_a_phase_has_the_peak_that_the_allocator_keeps(
    cuda: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    command = ["run", "--module", f"{path}:make", "-s", "none", "--reps", "2", "-q", "--json"]
    assert run_command(command) == 0
    data = json.loads(capsys.readouterr().out)
    (row,) = data["strategies"]
    assert data["device"] == "Torch(Cuda(0))"
    assert cuda == 3 * ["synchronize", "reset_peak_memory_stats", "synchronize", "memory_stats"]
    before = row["params_input_bytes"]
    assert row["traced_peak_forward_bytes"] == before + LARGE
    assert row["traced_peak_backward_bytes"] == row["peak_bytes"] == before + 2 * LARGE
    assert row["allocator_forward"] == {
        "requested_bytes": 2 * LARGE,
        "allocated_bytes": 2 * LARGE + 100,
        "reserved_bytes": 2 * LARGE + 1124,
    }
    assert row["allocator_backward"]["requested_bytes"] == 3 * LARGE
    assert row["process_peak_bytes"] is None
    assert row["forward_s"]["samples"] == pytest.approx([0.0005, 0.0005], rel=0.01)


@pytest.mark.slow
@NEEDS_TORCH
def test_a_module_is_on_one_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    assert run_command(["run", "--module", f"{path}:apart"]) == 2
    assert "on `meta`: a module is timed on the CPU or a CUDA device" in capsys.readouterr().err
