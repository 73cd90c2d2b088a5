"""A profiler for gradient checkpointing with its own reverse-mode engine.

    from ckptcli import device
    dev = device("numpy").autodiff().gradient_checkpointing()
    w = dev.tensor([[1.0, 2.0], [3.0, 4.0]]).require_grad()
    loss = (w * w).sum()
    print(loss.backward().wrt(w).numpy())

The names are loaded on first use, so that `ckpt --help` does not import an array library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ckptcli.version import VERSION as __version__

if TYPE_CHECKING:
    from ckptcli.autodiff.device import Device, device
    from ckptcli.autodiff.gradients import Gradients
    from ckptcli.autodiff.ops.cat import cat
    from ckptcli.autodiff.tensor import Tensor
    from ckptcli.measure.rounds import Plan
    from ckptcli.profiling.profile import profile
    from ckptcli.report.console import render

_HOMES = {
    "Device": "ckptcli.autodiff.device",
    "Gradients": "ckptcli.autodiff.gradients",
    "Plan": "ckptcli.measure.rounds",
    "Tensor": "ckptcli.autodiff.tensor",
    "cat": "ckptcli.autodiff.ops.cat",
    "device": "ckptcli.autodiff.device",
    "profile": "ckptcli.profiling.profile",
    "render": "ckptcli.report.console",
}

__all__ = [
    "Device",
    "Gradients",
    "Plan",
    "Tensor",
    "__version__",
    "cat",
    "device",
    "profile",
    "render",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
