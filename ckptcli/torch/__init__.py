"""What a training script in PyTorch uses of ckpt, a test as well.

    from ckptcli.torch import ledger, profile, render

    record = profile(model, x, loss=loss, strategies=["remat"])
    print(render(record))

    with ledger(model) as account:
        step()
    assert account.peak < 2**30

    plan = auto_checkpoint(model, x, "8GB", loss=loss)
    print(plan.code)

Nothing is loaded before it is used: a file that names its step can be read without PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcli.peers.module_step import Step
    from ckptcli.report.console import render
    from ckptcli.torch.planning import auto_checkpoint
    from ckptcli.torch.script import ledger, profile

_HOMES = {
    "Step": "ckptcli.peers.module_step",
    "auto_checkpoint": "ckptcli.torch.planning",
    "ledger": "ckptcli.torch.script",
    "profile": "ckptcli.torch.script",
    "render": "ckptcli.report.console",
}

__all__ = ["Step", "auto_checkpoint", "ledger", "profile", "render"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
