"""A value that was moved to the host's memory for the time in which the device does not need it."""

from __future__ import annotations

from typing import Any


class HostCopy:
    """An array of the host's; the device's array is made from it when it is used.

    Attributes:
        array: as the library keeps arrays in host memory.
        host_bytes: what it takes there.
    """

    __slots__ = ("__weakref__", "array", "host_bytes")

    def __init__(self, array: Any, host_bytes: int) -> None:
        self.array = array
        self.host_bytes = host_bytes
