"""CuPy: NumPy's functions on CUDA devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcli.backends.registry import ArrayLibrary, DeviceFacts, register

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend


@register
class CupyLibrary(ArrayLibrary):
    """CuPy on a CUDA device."""

    name = "cupy"
    title = "CuPy"
    packages = ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy")
    install = "pip install 'ckptcli[cuda]'"
    device_names = ("cuda",)

    def devices(self) -> Sequence[DeviceFacts]:
        from ckptcli.backends.cupy_backend import gpus

        return gpus()

    def open(self, device: str) -> Backend:
        from ckptcli.backends.cupy_backend import CupyBackend

        return CupyBackend(device)
