"""PyTorch as an array library: the processor, CUDA devices, Apple's GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcli.backends.registry import ArrayLibrary, DeviceFacts, processor, register

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend


@register
class TorchLibrary(ArrayLibrary):
    """PyTorch, its autograd off."""

    name = "torch"
    title = "PyTorch"
    packages = ("torch",)
    install = "pip install 'ckptcli[torch]'"
    device_names = ("cpu", "cuda", "mps")

    def devices(self) -> Sequence[DeviceFacts]:
        from ckptcli.backends.torch_backend import gpus

        return [processor(), *gpus()]

    def open(self, device: str) -> Backend:
        from ckptcli.backends.torch_backend import TorchBackend

        return TorchBackend(device)
