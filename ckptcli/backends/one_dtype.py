"""A backend whose arrays all have one dtype, whatever a program asks for."""

from __future__ import annotations

from typing import Any

from ckptcli.backends.base import Array, Backend


class OneDtypeBackend:
    """`inner` with every dtype taken for `dtype`; what is not about dtypes is the inner backend's.

    `cast` gives the dtype too, so that a program that mixes two runs in either.
    """

    def __init__(self, inner: Backend, dtype: str) -> None:
        self._inner = inner
        self._dtype = inner.checked_dtype(dtype)

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        del dtype
        return self._inner.asarray(data, self._dtype, copy)

    def checked_dtype(self, dtype: str) -> str:
        self._inner.checked_dtype(dtype)
        return self._dtype

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
