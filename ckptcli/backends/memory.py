"""What the allocator of a device says of its memory.

Three figures that differ: *requested* is what was asked for, *allocated* what blocks rounded up to
the allocator's unit take, *reserved* what the allocator took from the device and keeps. The ledger
knows the first alone, and of storages alone; the allocator sees kernels' work space too.

None is "the library does not tell", never 0.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PeakReading:
    """The largest figures since the phase began, for the whole process."""

    requested_bytes: int | None
    allocated_bytes: int | None
    reserved_bytes: int | None


@dataclass(frozen=True, slots=True)
class UseReading:
    """What an allocator has at one moment, for the whole process.

    Attributes:
        in_use_bytes: Blocks that tensors have, bytes.
        driver_bytes: What the allocator took from the driver, bytes.
    """

    in_use_bytes: int
    driver_bytes: int


class MemoryAccount(Protocol):
    """The account of one device's allocator."""

    def watching(self) -> AbstractContextManager[object]:
        """Around a watched pass; however that ends, a pass outside carries nothing of it."""
        return nullcontext()

    def start_phase(self) -> None:
        """Begin new peaks at what is in use now."""

    def peak(self) -> PeakReading | None:
        """The peaks of the phase; None where the device keeps none."""

    def use(self) -> UseReading | None:
        """What there is now, of an allocator that keeps no peaks; None of any other."""
        return None


class UnknownMemory(MemoryAccount):
    """Of a library that keeps no account, such as NumPy."""

    def start_phase(self) -> None:
        """Nothing begins."""

    def peak(self) -> PeakReading | None:
        return None
