"""A module that stands in for CuPy, which needs a GPU: NumPy's functions under CuPy's restrictions.

Ufuncs reduce and accumulate sums and products alone and have no `at`; what CuPy lacks raises. A
pool tells hooks of each block as CuPy's does, an event is a tick. It shows that the backend's own
code holds together; it shows nothing of CuPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np

from ckptcli import Device
from ckptcli.backends.base import Namespace
from ckptcli.backends.composed import composed
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.rebound import rebound

LACKS = ("errstate", "put_along_axis", "lexsort")


class Ufunc:
    """A ufunc as CuPy has it."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc
        if ufunc in (np.add, np.multiply):
            self.reduce = ufunc.reduce
            self.accumulate = ufunc.accumulate

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        return self._ufunc(*operands, out=out) if out is not None else self._ufunc(*operands)


class Pool:
    """A pool that rounds blocks up to 512 bytes and tells the hooks that are entered."""

    def __init__(self) -> None:
        self.used = self.total = 0
        self.hooks: list[Any] = []
        self._addresses = count(1)
        self.freed_all = 0

    def used_bytes(self) -> int:
        return self.used

    def total_bytes(self) -> int:
        return self.total

    def free_all_blocks(self) -> None:
        self.freed_all += 1

    def take(self, size: int) -> int:
        """A block of `size` bytes; its address."""
        block, address = -(-size // 512) * 512, next(self._addresses)
        self.used += block
        self.total = max(self.total, self.used)
        for hook in self.hooks:
            hook.malloc_postprocess(
                device_id=0, size=size, mem_size=block, mem_ptr=address, pmem_id=0
            )
        return address

    def give(self, address: int, size: int) -> None:
        """Give a block back."""
        block = -(-size // 512) * 512
        self.used -= block
        for hook in self.hooks:
            hook.free_postprocess(device_id=0, mem_size=block, mem_ptr=address, pmem_id=0)


class Event:
    """The tick at which it was recorded; ticks are half a second apart."""

    ticks = count()

    def record(self) -> None:
        self.tick = next(self.ticks)

    def synchronize(self) -> None:
        assert hasattr(self, "tick"), "an event is recorded before it is waited for"


def _wider(function: Callable[[float], float], x: Any) -> Any:
    """Element by element; of float16 CuPy makes float64."""
    dtype = np.float64 if x.dtype == np.float16 else x.dtype
    return np.vectorize(function, otypes=[np.float64])(x).astype(dtype).reshape(x.shape)


def erf(x: Any) -> Any:
    """CuPy's error function."""
    return _wider(math.erf, x)


def erfc(x: Any) -> Any:
    """CuPy's complement of it, of full accuracy in the tail."""
    return _wider(math.erfc, x)


class Library(ModuleType):
    """The module `cupy`."""

    __version__ = "13.0.0"
    ndarray = np.ndarray

    def __init__(self) -> None:
        super().__init__("cupy")
        self.pool = pool = Pool()

        class MemoryHook:
            def __enter__(self) -> Any:
                pool.hooks.append(self)
                return self

            def __exit__(self, *_: object) -> None:
                pool.hooks.remove(self)

        properties = {"name": b"Stand-in", "totalGlobalMem": 2**34}
        self.cuda = SimpleNamespace(
            MemoryHook=MemoryHook,
            Event=Event,
            Device=lambda index: SimpleNamespace(
                use=lambda: None, synchronize=lambda: None, mem_info=(2**30, 2**34), id=index
            ),
            get_elapsed_time=lambda first, second: 500.0 * (second.tick - first.tick),
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
            runtime=SimpleNamespace(
                getDeviceCount=lambda: 2,
                getDeviceProperties=lambda index: properties,
                CUDARuntimeError=RuntimeError,
                driverGetVersion=lambda: 12040,
            ),
        )

    def get_default_memory_pool(self) -> Pool:
        return self.pool

    def asnumpy(self, array: Any, order: str = "C") -> Any:
        return np.array(array, order=order)  # type: ignore[call-overload]

    def __getattr__(self, name: str) -> Any:
        if name in LACKS:
            raise AttributeError(f"CuPy has no {name}")
        value = getattr(np, name)
        return Ufunc(value) if isinstance(value, np.ufunc) else value


def stand_in_device() -> Device:
    """NumPy's arrays under the namespace that the backend is made of."""
    library = Library()
    names = {**rebound(library), **composed(library, erf, erfc)}
    return Device(NumpyBackend(cast(Namespace, SimpleNamespace(**names))))


def modules() -> dict[str, Any]:
    """What `sys.modules` needs for `import cupy` and `import cupyx.scipy.special`."""
    special = ModuleType("cupyx.scipy.special")
    special.erf = erf  # type: ignore[attr-defined]
    special.erfc = erfc  # type: ignore[attr-defined]
    scipy = ModuleType("cupyx.scipy")
    scipy.special = special  # type: ignore[attr-defined]
    cupyx = ModuleType("cupyx")
    cupyx.scipy = scipy  # type: ignore[attr-defined]
    return {
        "cupy": Library(),
        "cupyx": cupyx,
        "cupyx.scipy": scipy,
        "cupyx.scipy.special": special,
    }
