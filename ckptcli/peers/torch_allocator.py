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
from functools import partial
from typing import Any, TypeVar

import torch

from ckptcli.measure.rounds import collector_off
from ckptcli.peers.torch_module import ModuleNetwork

_ALLOCATION = "memory_alloc"
_RECORDER = ("_enable_profiler_legacy", "_disable_profiler_legacy")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Rises:
    """How far each phase raised what is allocated above what is there before the pass, at most;
    bytes, and None for a step that the pass does not have.
    """

    forward_bytes: int
    backward_bytes: int
    step_bytes: int | None


class _Recorder:
    """What is allocated now above the beginning, bytes."""

    def __init__(self) -> None:
        self.now_bytes = 0

    def highest(self, call: Callable[[], Result]) -> tuple[Result, int]:
        """What the call gives, and the most that is allocated in it."""
        enable, disable = (getattr(torch.autograd, name) for name in _RECORDER)
        enable(_settings())
        try:
            result = call()
        finally:
            threads = disable()
        highest_bytes = self.now_bytes
        for event in (event for thread in threads for event in thread):
            if event.kind() == _ALLOCATION:
                self.now_bytes += event.cpu_memory_usage()
                highest_bytes = max(highest_bytes, self.now_bytes)
        return result, highest_bytes


def allocator_rises(network: ModuleNetwork) -> Rises | None:
    """The allocator's rise in each phase of one pass; None where this PyTorch does not tell."""
    if not all(hasattr(torch.autograd, name) for name in _RECORDER):
        return None
    recorder, forwards, backwards, step_bytes = _Recorder(), [0], [0], None
    with collector_off():
        for _ in range(network.micro_batches):
            state, highest_bytes = recorder.highest(network.forward)
            forwards.append(highest_bytes)
            result, highest_bytes = recorder.highest(partial(network.backward, state))
            backwards.append(highest_bytes)
        if network.has_step:
            _, step_bytes = recorder.highest(partial(network.step, result))
            network.put_back()
    return Rises(max(forwards), max(backwards), step_bytes)


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
