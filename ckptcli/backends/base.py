"""What the engine needs from an array library.

The op table is written against a `Namespace` (the functions of the array API standard that it
uses, plus what the standard lacks), so that no op knows a library's name.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from ckptcli.backends.dtypes import DTYPES
from ckptcli.backends.loan import Loan
from ckptcli.backends.memory import MemoryAccount, UnknownMemory
from ckptcli.errors import DtypeError, UsageError


class Array(Protocol):
    """An n-dimensional array of one dtype, at least rank 1."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class AcceleratorFacts:
    """A device beside the host's processor. None: not known."""

    model: str
    memory_bytes: int | None
    driver: str | None


class Namespace(Protocol):
    """The functions that ops call.

    Element-wise functions take an optional array to write into as their last positional argument
    (None: a new array). Every result has rank 1 or more. Beyond the array API standard:
    `sigmoid(x)`, `sigmoid_gradient(x, gradient, out)`, `erf(x)`, `sum_all(x)`, `ones_seed(like)`,
    `storage_of(x)`, an object that lives as long as the memory of x and can be referred to weakly.
    """

    def __getattr__(self, name: str) -> Any: ...


class Backend(Protocol):
    """An array library on one device. Backends derive from it and take what stands here.

    Attributes:
        name: the name on the command line, `numpy`.
        label: the device in Burn's wording, `Numpy(Cpu)`.
        library: the library and its version, `NumPy 2.4.6`.
        namespace: what ops call.
        dtypes: the float dtypes that a tensor may have.
        memory: what the device's allocator tells.
        operand_errors: what a function of the namespace raises for operands that do not fit.
        is_deterministic: whether the same calls on the same operands give the same bits.
        is_cpu: whether it computes on the host's processor.
        waits_for_threads: whether its threads wait for each other at the end of every op, so that
            one without a core stops all.
        sees_kernel_memory: whether tracemalloc sees what a kernel allocates, and so its workspace.
        can_lend: whether `lend` works, which recording a program's costs needs.
    """

    name: str
    label: str
    library: str
    namespace: Namespace
    dtypes: tuple[str, ...]
    memory: MemoryAccount = UnknownMemory()
    operand_errors: tuple[type[Exception], ...] = (ValueError, OverflowError)
    is_deterministic: bool = True
    is_cpu: bool = True
    waits_for_threads: bool = False
    sees_kernel_memory: bool = False
    can_lend: bool = False

    @abstractmethod
    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        """`data` as an array of rank 1 or more; without `copy`, `data` itself where it is one.

        Raises:
            DtypeError: a dtype that the engine does not have.
        """

    @abstractmethod
    def to_numpy(self, array: Array) -> Any:
        """A read-only NumPy array with the same values, bfloat16 as float32."""

    @abstractmethod
    def storage_values(self, storage: Any, dtype: str) -> Any:
        """A copy on the host of a whole storage, as `to_numpy` gives it."""

    def lend(self, array: Array) -> tuple[Array, Loan]:
        """The memory of `array` as another array, and the owner that goes with its last view.

        Raises:
            UsageError: a device whose memory cannot be lent, which `can_lend` tells before.
        """
        raise UsageError(f"{self.label} cannot lend memory")

    def checked_dtype(self, dtype: str) -> str:
        """`dtype` itself.

        Raises:
            DtypeError: a dtype that the backend does not have.
        """
        if dtype not in self.dtypes:
            raise dtype_error(self, dtype)
        return dtype

    def quiet(self) -> AbstractContextManager[object]:
        """Floating-point warnings off inside: a profile looks at the loss instead."""
        return nullcontext()

    def synchronize(self) -> None:
        """Wait until everything that was asked of the device is done."""
        return None

    def clock(self) -> Callable[[], float]:
        """Seconds from an arbitrary start; a call first waits for the device."""
        return time.perf_counter

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether `error` says that there is not enough memory."""
        return isinstance(error, MemoryError)

    def free_bytes(self) -> int | None:
        """The free memory of a device that has its own; None where that is the host's."""
        return None

    def accelerator(self) -> AcceleratorFacts | None:
        """The device that computes; None for the host's processor."""
        return None

    def limit_threads(self, count: int) -> None:
        """Compute with `count` threads, where the library has threads beside those of the BLAS."""
        return None

    def release_cached(self) -> None:
        """Give back the memory that the library keeps for later."""
        return None


def cuda_version(number: int) -> str:
    """`CUDA 12.4` for 12040, as a driver tells what it can run."""
    return f"CUDA {number // 1000}.{number % 1000 // 10}"


def dtype_error(backend: Backend, dtype: object) -> DtypeError:
    """The error about a dtype that `backend` does not have."""
    hint = f"use {' or '.join(backend.dtypes)}"
    where = ""
    if dtype in DTYPES:
        where, hint = f" on {backend.label}", f"{hint}, or another backend"
    return DtypeError(f"a tensor cannot have dtype `{dtype}`{where}", hint)
