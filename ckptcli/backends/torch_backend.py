"""The torch backend: PyTorch as an array library, on the processor or a GPU.

PyTorch's autograd stays off: tensors are detached when they come in, nothing requires a gradient,
and a profile runs inside `torch.no_grad`. The tape is ours.

Source: PyTorch's notes on CUDA semantics (asynchronous execution, memory statistics, events).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch

from ckptcli.backends.base import (
    AcceleratorFacts,
    Array,
    Backend,
    Namespace,
    cuda_version,
    dtype_error,
)
from ckptcli.backends.loan import Loan
from ckptcli.backends.memory import MemoryAccount, PeakReading, UnknownMemory, UseReading
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.registry import DeviceFacts
from ckptcli.backends.torch_namespace import TorchNamespace, dtype_name, dtype_of

_HOST = NumpyBackend()
_ALL = ("float32", "float64", "float16", "bfloat16")
_WITHOUT_DOUBLE = ("float32", "float16", "bfloat16")

OUT_OF_MEMORY_WORDS = ("DefaultCPUAllocator", "out of memory")
"""On the processor and on Apple's GPU, PyTorch tells it in the text of a RuntimeError alone."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that there is not enough memory, on the host or on a device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    told = isinstance(error, RuntimeError)
    return told and any(words in str(error) for words in OUT_OF_MEMORY_WORDS)


def gpus() -> Iterator[DeviceFacts]:
    """The GPUs that this PyTorch can use."""
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(index)
            yield DeviceFacts(f"cuda:{index}", facts.name, facts.total_memory, is_gpu=True)
    if torch.backends.mps.is_available():
        yield DeviceFacts("mps", "Apple GPU", mps_memory_bytes(), is_gpu=True)


class TorchBackend(Backend):
    """Arrays are `torch.Tensor` on one device."""

    name = "torch"
    library = f"PyTorch {torch.__version__}"
    operand_errors = (ValueError, RuntimeError, IndexError, OverflowError)
    waits_for_threads = True

    def __init__(self, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.namespace = cast(Namespace, TorchNamespace(self.device))
        index = "" if self.device.index is None else f"({self.device.index})"
        self.label = f"Torch({self.device.type.capitalize()}{index})"
        self.dtypes = _WITHOUT_DOUBLE if self.device.type == "mps" else _ALL
        self.is_cpu = self.is_deterministic = self.device.type == "cpu"
        self.can_lend = self.device.type in ("cpu", "cuda")
        self.memory = self._account()

    def _account(self) -> MemoryAccount:
        if self.device.type == "cuda":
            return CudaMemory(self.device)
        return MpsMemory() if self.device.type == "mps" else UnknownMemory()

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        if dtype is not None:
            self.checked_dtype(dtype)
        tensor = data.detach() if isinstance(data, torch.Tensor) else self._from_host(data, dtype)
        if dtype is None:
            dtype = dtype_name(tensor)
            if tensor.is_complex():
                raise dtype_error(self, dtype)
            dtype = dtype if dtype in self.dtypes else "float32"
        tensor = tensor.to(self.device, dtype_of(dtype), copy=copy)
        array: Array = tensor.reshape(1) if tensor.ndim == 0 else tensor
        return array

    def _from_host(self, data: Any, dtype: str | None) -> Any:
        """A tensor in host memory, in the dtype of the data where that is a float's."""
        wide = dtype is not None and getattr(data, "dtype", None) not in (np.float32, np.float16)
        array = _HOST.asarray(data, "float64" if wide else None, copy=False)
        return torch.from_numpy(np.require(array, requirements=["C", "W"]))

    def to_numpy(self, array: Any) -> Any:
        host = array.detach().cpu()
        host = host.float() if host.dtype is torch.bfloat16 else host
        view = host.numpy().view()
        view.flags.writeable = False
        return view

    def storage_values(self, storage: Any, dtype: str) -> Any:
        flat = torch.empty(0, dtype=dtype_of(dtype), device=self.device).set_(storage)
        return self.to_numpy(flat).copy()

    def lend(self, array: Any) -> tuple[Array, Loan]:
        # NumPy and the CUDA array interface lack bfloat16: its bits go over as whole numbers.
        is_half = array.dtype is torch.bfloat16
        bits = array.view(torch.int16) if is_half else array
        loan = Loan(bits.numpy() if self.is_cpu else bits)
        if self.is_cpu:
            lent = torch.from_numpy(np.asarray(loan))
        else:  # without the device it would be copied to the host
            lent = torch.as_tensor(loan, device=self.device)
        return lent.view(torch.bfloat16) if is_half else lent, loan

    @contextmanager
    def quiet(self) -> Iterator[None]:
        with torch.no_grad(), np.errstate(all="ignore"):  # NumPy reads what came to the host
            yield

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()

    def accelerator(self) -> AcceleratorFacts | None:
        if self.device.type == "mps":
            return AcceleratorFacts("Apple GPU", mps_memory_bytes(), None)
        if self.device.type != "cuda":
            return None if self.is_cpu else AcceleratorFacts(str(self.device), None, None)
        facts = torch.cuda.get_device_properties(self.device)
        driver = cuda_version(torch._C._cuda_getDriverVersion())
        return AcceleratorFacts(facts.name, facts.total_memory, driver)

    def clock(self) -> Callable[[], float]:
        if self.device.type == "cuda":
            return CudaClock(self.device)
        return time.perf_counter if self.device.type == "cpu" else self._after_synchronizing

    def _after_synchronizing(self) -> float:
        self.synchronize()
        return time.perf_counter()

    def is_out_of_memory(self, error: BaseException) -> bool:
        return is_out_of_memory(error)

    def free_bytes(self) -> int | None:
        if self.device.type == "mps":
            whole = mps_memory_bytes()
            return None if whole is None else max(0, whole - torch.mps.driver_allocated_memory())
        if self.device.type != "cuda":
            return None
        return int(torch.cuda.mem_get_info(self.device)[0])

    def limit_threads(self, count: int) -> None:
        torch.set_num_threads(count)

    def release_cached(self) -> None:
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.empty_cache()
        elif self.device.type == "mps":
            torch.mps.empty_cache()


class CudaMemory(MemoryAccount):
    """The statistics of PyTorch's caching allocator, which keeps peaks itself."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def start_phase(self) -> None:
        torch.cuda.synchronize(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)

    def peak(self) -> PeakReading:
        torch.cuda.synchronize(self._device)
        statistics = torch.cuda.memory_stats(self._device)
        return PeakReading(
            statistics.get("requested_bytes.all.peak"),
            statistics.get("allocated_bytes.all.peak"),
            statistics.get("reserved_bytes.all.peak"),
        )


class MpsMemory(MemoryAccount):
    """What the allocator of Apple's GPU has; it keeps no peaks."""

    def start_phase(self) -> None:
        torch.mps.synchronize()

    def peak(self) -> PeakReading | None:
        return None

    def use(self) -> UseReading:
        torch.mps.synchronize()
        return UseReading(torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory())


def mps_memory_bytes() -> int | None:
    """What Apple's GPU may have of the machine's memory; None of a PyTorch that does not tell."""
    tell = getattr(torch.mps, "recommended_max_memory", None)
    return None if tell is None else int(tell())


class CudaClock:
    """Seconds by events on the device's current stream, which a call waits for.

    An event's distance to the last one is summed up, since a distance is a float32 of milliseconds.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._seconds = 0.0
        self._last = self._event()

    def __call__(self) -> float:
        event = self._event()
        self._seconds += self._last.elapsed_time(event) / 1e3
        self._last = event
        return self._seconds

    def _event(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        event.synchronize()
        return event
