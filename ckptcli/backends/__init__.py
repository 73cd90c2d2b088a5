"""Array libraries behind one protocol, and the ledger of what they hold.

The registry is loaded on first use: facts such as the names of dtypes need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcli.backends.registry import open_backend as open_backend


def __getattr__(name: str) -> Any:
    if name != "open_backend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ckptcli.backends.registry import open_backend

    return open_backend
