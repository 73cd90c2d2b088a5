"""A backend around another: whoever watches what ops call is one, and says what it does at a call.

Invariant: what a wrapper does not say itself is the inner backend's, to the last attribute.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ckptcli.backends.base import AcceleratorFacts, Array, Backend, Namespace
from ckptcli.backends.loan import Loan

NAMESPACE_FACTS = ("storage_of", "storage_id", "storage_layout", "nbytes", "dtype_name")
"""Functions of a namespace that say something of an array and make none."""


class WrappedNamespace(ABC):
    """A namespace whose every call is seen, but for those that make no array."""

    def __init__(self, inner: Namespace) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._inner, name)
        if name not in NAMESPACE_FACTS:
            function = self._seen(name, function)
        setattr(self, name, function)
        return function

    @abstractmethod
    def _seen(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """What stands for the function `name` of the inner namespace."""


class WrappedBackend(Backend):
    """A backend with another namespace. Those derived from it see what becomes an array, too."""

    def __init__(self, inner: Backend, namespace: Namespace) -> None:
        self._inner = inner
        self.namespace = namespace
        self.name = inner.name
        self.label = inner.label
        self.library = inner.library
        self.dtypes = inner.dtypes
        self.memory = inner.memory
        self.operand_errors = inner.operand_errors
        self.is_deterministic = inner.is_deterministic
        self.is_cpu = inner.is_cpu
        self.waits_for_threads = inner.waits_for_threads
        self.sees_kernel_memory = inner.sees_kernel_memory
        self.can_lend = inner.can_lend

    def to_numpy(self, array: Array) -> Any:
        return self._inner.to_numpy(array)

    def storage_values(self, storage: Any, dtype: str) -> Any:
        return self._inner.storage_values(storage, dtype)

    def lend(self, array: Array) -> tuple[Array, Loan]:
        return self._inner.lend(array)

    def quiet(self) -> AbstractContextManager[object]:
        return self._inner.quiet()

    def synchronize(self) -> None:
        self._inner.synchronize()

    def clock(self) -> Callable[[], float]:
        return self._inner.clock()

    def is_out_of_memory(self, error: BaseException) -> bool:
        return self._inner.is_out_of_memory(error)

    def free_bytes(self) -> int | None:
        return self._inner.free_bytes()

    def accelerator(self) -> AcceleratorFacts | None:
        return self._inner.accelerator()

    def limit_threads(self, count: int) -> None:
        self._inner.limit_threads(count)

    def release_cached(self) -> None:
        self._inner.release_cached()
