"""A backend with a limit: beyond it, a call is refused as the library refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptcli.backends.base import Array, Backend, Namespace
from ckptcli.backends.ledger import Ledger, TrackedBackend


class RefusingNamespace:
    """Every result is counted; one that goes beyond the limit is given up, and the error raised."""

    def __init__(
        self, inner: Namespace, ledger: Ledger, limit_bytes: int, error: Callable[[], Exception]
    ) -> None:
        self._inner = inner
        self._ledger = ledger
        self._limit_bytes = limit_bytes
        self._error = error

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._inner, name)
        if name in ("storage_of", "storage_id", "storage_layout", "nbytes", "dtype_name"):
            return function

        def limited(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if self._ledger.bytes_in_use > self._limit_bytes:
                del result
                raise self._error()
            return result

        return limited


class RefusingBackend(TrackedBackend):
    """`inner` with `limit_bytes` of memory; `released` counts how often caches were given back."""

    def __init__(
        self, inner: Backend, limit_bytes: int, error: Callable[[], Exception] = MemoryError
    ) -> None:
        self.ledger = Ledger()
        super().__init__(inner, self.ledger)
        self.released = 0
        namespace: Any = RefusingNamespace(self.namespace, self.ledger, limit_bytes, error)
        self.namespace = self._limited = namespace
        self.sees_kernel_memory = False

    def limit(self, limit_bytes: int) -> None:
        """From now on, have `limit_bytes`."""
        self._limited._limit_bytes = limit_bytes

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        return super().asarray(data, dtype, copy=True)

    def release_cached(self) -> None:
        self.released += 1
