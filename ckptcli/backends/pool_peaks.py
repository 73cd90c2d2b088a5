"""Peaks of a memory pool that keeps none, from what a hook is told of each block.

What was in the pool when a phase began has no requested size; it counts with the pool's own figure.
"""

from __future__ import annotations

from collections.abc import Callable

from ckptcli.backends.memory import PeakReading


class PoolPeaks:
    """The largest requested, allocated and reserved bytes since `start`."""

    def __init__(self, used_bytes: Callable[[], int], total_bytes: Callable[[], int]) -> None:
        self._used_bytes = used_bytes
        self._total_bytes = total_bytes
        self._blocks: dict[int, tuple[int, int]] = {}
        self.start()

    def start(self) -> None:
        """Begin new peaks at what the pool has in use now."""
        self._blocks.clear()
        self._allocated = self._requested = self._used_bytes()
        self._highest = (self._requested, self._allocated, self._total_bytes())

    def taken(self, address: int, requested_bytes: int, block_bytes: int) -> None:
        """A block was taken from the pool; at address 0 none was, for lack of memory."""
        if not address:
            return
        self._blocks[address] = requested_bytes, block_bytes
        self._requested += requested_bytes
        self._allocated += block_bytes
        now = self._requested, self._allocated, self._total_bytes()
        self._highest = tuple(map(max, now, self._highest))  # type: ignore[assignment]

    def freed(self, address: int, block_bytes: int) -> None:
        """A block went back to the pool; one from before the phase counts as its size."""
        requested, block = self._blocks.pop(address, (block_bytes, block_bytes))
        self._requested -= requested
        self._allocated -= block

    def peak(self) -> PeakReading:
        """The peaks so far."""
        return PeakReading(*self._highest)
