"""NumPy: the default, in host memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcli.backends.registry import ArrayLibrary, DeviceFacts, processor, register

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend


@register
class NumpyLibrary(ArrayLibrary):
    """NumPy on the processor."""

    name = "numpy"
    title = "NumPy"
    packages = ("numpy",)
    install = "pip install numpy"
    device_names = ("cpu",)

    def devices(self) -> Sequence[DeviceFacts]:
        return [processor()]

    def open(self, device: str) -> Backend:
        from ckptcli.backends.numpy_backend import NumpyBackend

        return NumpyBackend()
