"""How high PyTorch's allocator goes in one pass: tensors, and what kernels take for themselves.

On a CPU the profiler tells of each allocation and release, in order; no dispatch mode is entered,
so that ops run as they do without ckpt. What is above the ledger's peak is scratch memory of
kernels, and what PyTorch makes without an op, as the random states that checkpoints keep.

Source: `torch/csrc/autograd/profiler_legacy.h`, whose recording needs no tracing library and prints
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ckptcli.measure.rounds import collector_off
from ckptcli.peers.torch_module import ModuleNetwork

_ALLOCATION = "memory_alloc"
_RECORDER = ("_enable_profiler_legacy", "_disable_profiler_legacy")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Rise:
    """How far a phase raised what is allocated: at most, and at its end; bytes."""

    highest_bytes: int
    left_bytes: int


@dataclass(frozen=True, slots=True)
class AllocatorPeaks:
    """Above what is there before the pass, bytes."""

    forward_bytes: int
    backward_bytes: int


def allocator_peaks(network: ModuleNetwork) -> AllocatorPeaks | None:
    """The allocator's peak in each phase of one pass; None where this PyTorch does not tell."""
    if not all(hasattr(torch.autograd, name) for name in _RECORDER):
        return None
    with collector_off():
        state, forward = _recorded(network.forward)
        result, backward = _recorded(lambda: network.backward(state))
        del result
    return AllocatorPeaks(forward.highest_bytes, forward.left_bytes + backward.highest_bytes)


def _recorded(call: Callable[[], Result]) -> tuple[Result, Rise]:
    """What the call gives, and how far it raised what is allocated."""
    enable, disable = (getattr(torch.autograd, name) for name in _RECORDER)
    enable(_settings())
    try:
        result = call()
    finally:
        threads = disable()
    now_bytes = highest_bytes = 0
    for event in (event for thread in threads for event in thread):
        if event.kind() == _ALLOCATION:
            now_bytes += event.cpu_memory_usage()
            highest_bytes = max(highest_bytes, now_bytes)
    return result, Rise(highest_bytes, now_bytes)


def _settings() -> Any:
    """No shapes, but memory; no stack, no operations, no modules."""
    profiler = torch._C._profiler
    return torch.autograd.ProfilerConfig(
        torch.autograd.ProfilerState.CPU,
        False,
        True,
        False,
        False,
        False,
        profiler._ExperimentalConfig(),
    )
