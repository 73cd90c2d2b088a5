"""How high PyTorch's allocator goes in one pass: tensors, and what kernels take for themselves.

On a CPU the profiler tells of each allocation and release, in order; no dispatch mode is entered,
so that ops run as they do without ckpt. What is above the ledger's peak is scratch memory of
kernels, and what PyTorch makes without an op, as the random states that checkpoints keep. A GPU's
allocator keeps its peaks itself.

Source: `torch/csrc/autograd/profiler_legacy.h`, whose recording needs no tracing library and prints
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import torch

from ckptcli.backends.memory import MemoryAccount
from ckptcli.backends.torch_backend import CudaMemory
from ckptcli.measure.memory import AllocatorPeak
from ckptcli.measure.rounds import collector_off
from ckptcli.peers.torch_module import ModuleNetwork
from ckptcli.peers.torch_stderr import without_lines

_ALLOCATION = "memory_alloc"
_OLDER = b"allocated before the profiling started"
"""In the warning that PyTorch gives when something is let go of inside that was there before, which
its events leave out."""
_RECORDER = ("_enable_profiler_legacy", "_disable_profiler_legacy")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Rises:
    """How far each phase raised what is allocated above what is there before the pass, at most;
    bytes, and None for a step that the pass does not have.

    Attributes:
        forward, backward: what the device's allocator says of the process; None on a CPU.
    """

    forward_bytes: int
    backward_bytes: int
    step_bytes: int | None
    forward: AllocatorPeak | None = None
    backward: AllocatorPeak | None = None


class _Recorder(Protocol):
    def highest(self, call: Callable[[], Result]) -> tuple[Result, int]:
        """What the call gives, and the most in it above the recorder's beginning, bytes."""

    @property
    def last(self) -> AllocatorPeak | None:
        """What the device's allocator says of the last call."""


class _Events:
    """The events of one pass on a CPU."""

    last = None

    def __init__(self) -> None:
        self._now_bytes = 0

    def highest(self, call: Callable[[], Result]) -> tuple[Result, int]:
        enable, disable = (getattr(torch.autograd, name) for name in _RECORDER)
        with without_lines(_OLDER):
            enable(_settings())
            try:
                result = call()
            finally:
                threads = disable()
        highest_bytes = self._now_bytes
        for event in (event for thread in threads for event in thread):
            if event.kind() == _ALLOCATION:
                self._now_bytes += event.cpu_memory_usage()
                highest_bytes = max(highest_bytes, self._now_bytes)
        return result, highest_bytes


class _Statistics:
    """The peaks that a device's allocator keeps, begun anew before each call."""

    def __init__(self, memory: MemoryAccount) -> None:
        self.last: AllocatorPeak | None = None
        self._memory = memory
        memory.start_phase()
        self._before_bytes = self._requested_bytes()

    def highest(self, call: Callable[[], Result]) -> tuple[Result, int]:
        self._memory.start_phase()
        result = call()
        return result, self._requested_bytes() - self._before_bytes

    def _requested_bytes(self) -> int:
        """What was asked for at most; an allocator that does not tell rounds it up to blocks."""
        peak = self._memory.peak()
        if peak is None:
            return 0
        self.last = AllocatorPeak(peak.requested_bytes, peak.allocated_bytes, peak.reserved_bytes)
        known = (peak.requested_bytes, peak.allocated_bytes)
        return next((size for size in known if size is not None), 0)


def allocator_rises(network: ModuleNetwork) -> Rises | None:
    """The allocator's rise in each phase of one pass; None where this PyTorch does not tell."""
    device = network.user.device
    if device.type == "cuda":
        return _rises(network, _Statistics(CudaMemory(device)))
    if not all(hasattr(torch.autograd, name) for name in _RECORDER):
        return None
    return _rises(network, _Events())


def _rises(network: ModuleNetwork, recorder: _Recorder) -> Rises:
    """Of several micro-batches the highest."""
    forwards, backwards, step_bytes = [(0, recorder.last)], [(0, recorder.last)], None
    with collector_off():
        for _ in range(network.micro_batches):
            state, highest_bytes = recorder.highest(network.forward)
            forwards.append((highest_bytes, recorder.last))
            result, highest_bytes = recorder.highest(partial(network.backward, state))
            backwards.append((highest_bytes, recorder.last))
        if network.has_step:
            _, step_bytes = recorder.highest(partial(network.step, result))
            network.put_back()
    forward_bytes, forward = max(forwards, key=lambda found: found[0])
    backward_bytes, backward = max(backwards, key=lambda found: found[0])
    return Rises(forward_bytes, backward_bytes, step_bytes, forward, backward)


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
