"""Array libraries behind one protocol, and the ledger of what they hold."""

from __future__ import annotations

from ckptcli.backends.base import Backend
from ckptcli.errors import UnknownNameError


def open_backend(name: str) -> Backend:
    """The backend called `name`.

    Raises:
        UnknownNameError: there is none.
    """
    if name != "numpy":
        raise UnknownNameError("backend", name, ["numpy"])
    from ckptcli.backends.numpy_backend import NumpyBackend

    return NumpyBackend()
