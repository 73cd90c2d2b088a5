"""A backend whose every array is entered in the account of a recording."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ckptcli.autodiff import apply
from ckptcli.backends.base import Array, Backend, Namespace
from ckptcli.backends.random_keys import RandomKey
from ckptcli.backends.workspace import Workspaces
from ckptcli.backends.wrapped import WrappedBackend, WrappedNamespace
from ckptcli.simulation.account import Account

_APPLYING = {apply.unary.__code__, apply.binary.__code__, apply.many.__code__}


class RecordingNamespace(WrappedNamespace):
    """A namespace that tells the account of each call: what it allocates, and its workspace, if
    there are `workspaces` that see it.
    """

    def __init__(self, inner: Namespace, account: Account, workspaces: Workspaces | None) -> None:
        super().__init__(inner)
        self._account = account
        self._workspaces = workspaces

    def random(self, key: RandomKey, shape: tuple[int, ...], dtype: str) -> Array:
        """A random array, whose leaf is to be drawn again when the program is played."""
        array: Array = self._seen("random", self._inner.random)(key, shape, dtype)
        self._account.drawn = key.distribution
        return array

    def _seen(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        del name
        account, workspaces = self._account, self._workspaces

        def told(*args: Any, **kwargs: Any) -> Any:
            if _is_applying():
                account.forward_begins()
            if workspaces is None:
                result, workspace_bytes = function(*args, **kwargs), 0
            else:
                result, workspace_bytes = workspaces.call(function, args, kwargs)
            if hasattr(result, "nbytes"):
                account.observe(result)
            account.observe_workspace(workspace_bytes)
            return result

        return told


def _is_applying() -> bool:
    """Whether the engine's own way of applying an op has made the call, not a function of the op
    table in front of it: what is recomputed is the former alone.
    """
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ckptcli.autodiff"):
        if frame.f_code in _APPLYING:
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


class RecordingBackend(WrappedBackend):
    """A backend whose every array is entered in the account."""

    def __init__(self, inner: Backend, account: Account) -> None:
        workspaces = Workspaces() if inner.sees_kernel_memory else None
        super().__init__(inner, RecordingNamespace(inner.namespace, account, workspaces))
        self._account = account

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        array = self._inner.asarray(data, dtype, copy)
        self._account.observe(array)
        return array
