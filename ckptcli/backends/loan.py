"""Lent memory: the memory of an array under an owner of its own.

Whoever is handed such an array holds the owner with it, by whatever view, so that a weak reference
to the owner tells when the last of them is let go of, though the array itself lives on.
"""

from __future__ import annotations

from typing import Any


class Loan:
    """The owner. Libraries take it for memory by NumPy's or CUDA's array interface, without a copy.

    Source: NumPy's array interface protocol, version 3; Numba's CUDA array interface, version 3.
    """

    __slots__ = ("__weakref__", "_array")

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = self._array.__array_interface__
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = self._array.__cuda_array_interface__
        return interface
