"""The cupy backend: NumPy's namespace on a CUDA device.

Written from CuPy's documentation and source (ufunc.reduce has add and multiply alone, ufunc.at no
multiply, repeated places of an assignment are left open, out-of-memory is a MemoryError, a
`MemoryHook` is told of every block). What CuPy lacks comes from `composed`.

Source: CuPy 13, "Differences between CuPy and NumPy" and "Memory management".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any, cast

import cupy
import numpy as np
from cupyx.scipy import special

from ckptcli.backends import numpy_namespace
from ckptcli.backends.base import (
    AcceleratorFacts,
    Array,
    Backend,
    Namespace,
    cuda_version,
    dtype_error,
)
from ckptcli.backends.composed import composed
from ckptcli.backends.host_copy import HostCopy
from ckptcli.backends.loan import Loan
from ckptcli.backends.memory import MemoryAccount, PeakReading
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.pool_peaks import PoolPeaks
from ckptcli.backends.random_keys import RandomKey, draw
from ckptcli.backends.rebound import rebound
from ckptcli.backends.registry import DeviceFacts

_HOST = NumpyBackend()


def gpus() -> list[DeviceFacts]:
    """The CUDA devices; none where there is no driver."""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        return []
    return list(map(_facts, range(count)))


def _facts(index: int) -> DeviceFacts:
    properties = cupy.cuda.runtime.getDeviceProperties(index)
    title = properties["name"]
    title = title.decode() if isinstance(title, bytes) else str(title)
    return DeviceFacts(f"cuda:{index}", title, properties["totalGlobalMem"], is_gpu=True)


def cupy_namespace() -> Namespace:
    """NumPy's namespace with CuPy's functions; host data is brought to the device."""

    def random(key: RandomKey, shape: tuple[int, ...], dtype: str) -> Any:
        return cupy.asarray(draw(key, shape).astype(dtype, copy=False))

    def asindices(data: Any) -> Any:
        if isinstance(data, cupy.ndarray):
            if data.size and data.dtype.kind not in "iu":
                raise ValueError(f"indices must be whole numbers, got {data.dtype}")
            return cupy.atleast_1d(data).astype(np.int64, copy=False)
        return cupy.asarray(numpy_namespace.asindices(data))

    def to_host(x: Any) -> HostCopy:
        return HostCopy(cupy.asnumpy(x, order="A"), x.nbytes)

    def from_host(copied: HostCopy) -> Any:
        return cupy.array(copied.array, order="K")

    names = rebound(cupy)
    names.update(composed(cupy, special.erf, special.erfc))
    names.update(random=random, asindices=asindices, to_host=to_host, from_host=from_host)
    return cast(Namespace, SimpleNamespace(**names))


class CupyBackend(Backend):
    """Arrays are `cupy.ndarray` on one CUDA device, which is the current one from then on."""

    name = "cupy"
    library = f"CuPy {cupy.__version__}"
    dtypes = ("float32", "float64", "float16")
    operand_errors = (ValueError, IndexError, OverflowError)
    is_deterministic = False
    is_cpu = False
    can_lend = True

    def __init__(self, device: str = "cuda:0") -> None:
        index = int(device.partition(":")[2] or 0)
        self.device = cupy.cuda.Device(index)
        self.device.use()
        self.label = f"Cupy(Cuda({index}))"
        self.namespace = cupy_namespace()
        self.memory = CupyMemory()

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        if dtype is not None:
            self.checked_dtype(dtype)
        if not isinstance(data, cupy.ndarray):
            half = dtype == "float16" or getattr(data, "dtype", None) == np.float16
            host = _HOST.asarray(data, "float64" if half else dtype, copy=False)
            data, copy = cupy.asarray(host), False
            dtype = "float16" if half else dtype
        if dtype is None:
            if data.dtype.kind not in "biuf":
                raise dtype_error(self, data.dtype.name)
            dtype = data.dtype.name if data.dtype.name in self.dtypes else "float32"
        array: Array = data.astype(dtype, copy=copy)
        return cast(Any, array).reshape(1) if array.ndim == 0 else array

    def to_numpy(self, array: Any) -> Any:
        host = cupy.asnumpy(array)
        host.flags.writeable = False
        return host

    def storage_values(self, storage: Any, dtype: str) -> Any:
        return cupy.asnumpy(storage).copy()

    def lend(self, array: Array) -> tuple[Array, Loan]:
        loan = Loan(array)
        return cupy.asarray(loan), loan

    def quiet(self) -> AbstractContextManager[object]:
        return np.errstate(all="ignore")

    def synchronize(self) -> None:
        self.device.synchronize()

    def clock(self) -> Callable[[], float]:
        return CupyClock()

    def free_bytes(self) -> int:
        return int(self.device.mem_info[0])

    def accelerator(self) -> AcceleratorFacts:
        runtime = cupy.cuda.runtime
        name = runtime.getDeviceProperties(self.device.id)["name"]
        model = name.decode() if isinstance(name, bytes) else str(name)
        driver = cuda_version(runtime.driverGetVersion())
        return AcceleratorFacts(model, int(self.device.mem_info[1]), driver)

    def release_cached(self) -> None:
        cupy.get_default_memory_pool().free_all_blocks()


class _Hook(cupy.cuda.MemoryHook):  # type: ignore[misc]  # CuPy is not there when types are checked
    """Tells the peaks of every block; CuPy's pool keeps none."""

    name = "ckpt peaks"

    def __init__(self, peaks: PoolPeaks) -> None:
        self._peaks = peaks

    def malloc_postprocess(self, **block: Any) -> None:
        self._peaks.taken(block["mem_ptr"], block["size"], block["mem_size"])

    def free_postprocess(self, **block: Any) -> None:
        self._peaks.freed(block["mem_ptr"], block["mem_size"])


class CupyMemory(MemoryAccount):
    """The default pool; the hook is there while a pass is watched."""

    def __init__(self) -> None:
        pool = cupy.get_default_memory_pool()
        self._peaks = PoolPeaks(pool.used_bytes, pool.total_bytes)

    @contextmanager
    def watching(self) -> Iterator[None]:
        with _Hook(self._peaks):
            yield

    def start_phase(self) -> None:
        cupy.cuda.get_current_stream().synchronize()
        self._peaks.start()

    def peak(self) -> PeakReading:
        cupy.cuda.get_current_stream().synchronize()
        return self._peaks.peak()


class CupyClock:
    """Seconds by events on the current stream, which a call waits for."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._last = self._event()

    def __call__(self) -> float:
        event = self._event()
        self._seconds += cupy.cuda.get_elapsed_time(self._last, event) / 1e3
        self._last = event
        return self._seconds

    def _event(self) -> Any:
        event = cupy.cuda.Event()
        event.record()
        event.synchronize()
        return event
