"""What a training script in PyTorch uses of ckpt.

    from ckptcli.torch import Step

Nothing is loaded before it is used: a file that names its step can be read without PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcli.peers.module_step import Step

_HOMES = {"Step": "ckptcli.peers.module_step"}

__all__ = ["Step"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
