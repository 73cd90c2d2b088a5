"""Element-wise kernels in blocks that stay in cache.

A kernel of several steps over a whole array would stream every intermediate through memory and
hold it at full size; block by block the intermediates stay in the second-level cache.

Invariant: what a kernel takes beside its result follows from shapes alone, not from the number of
lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckptcli.backends.lanes import MOST_LANES, can_share, share

FloatArray = NDArray[Any]

BLOCK_ELEMENTS = 32768
"""128 KiB of float32: three operands of it, what a step has, fit a second-level cache of 512 KiB.
Where blocks end shows in the bits: of two nan NumPy keeps the other in a rest of a few elements."""

LARGE_ELEMENTS = 2**19
"""From here on waking a thread is worth it."""

LARGE_BLOCK_BYTES = 240 * 1024
"""A block of a large array: long enough that lanes seldom wait for the interpreter's lock, and four
of them, two of each lane, take less than 1 MiB."""

PART_BLOCKS = 2
"""What a lane takes at a time."""


@dataclass(frozen=True, slots=True)
class BlockKernel:
    """A kernel that is computed block by block.

    Attributes:
        function: is called with a block of the result, one of each operand, and its room: one array
            of `rows` arrays of the block's shape, for its intermediates.
        rows: how many intermediates it holds at once.
        has_lanes: whether lanes share large arrays: its steps are few, and it makes no arrays.
        block_elements: of an array that one lane computes.
    """

    function: Callable[..., Any]
    rows: int
    has_lanes: bool = False
    block_elements: int = BLOCK_ELEMENTS


def in_blocks(kernel: BlockKernel, arrays: tuple[FloatArray, ...], lanes: int = 1) -> FloatArray:
    """Call the kernel for every block of `arrays`, the result first, which is returned.

    Arrays without gaps are cut flat, others along their longest axis.
    """
    out = arrays[0]
    is_large = kernel.has_lanes and out.size >= LARGE_ELEMENTS
    elements = LARGE_BLOCK_BYTES // out.itemsize if is_large else kernel.block_elements
    blocks = (_FlatBlocks if are_flat(arrays) else _AxisBlocks)(kernel.function, arrays, elements)
    rooms = np.empty((MOST_LANES if is_large else 1, kernel.rows, blocks.elements), out.dtype)
    if is_large and can_share(lanes):
        _on_lanes(blocks, rooms, lanes)
    else:
        _compute(blocks, 0, blocks.length, rooms[0])
    return out


def are_flat(arrays: tuple[FloatArray, ...]) -> bool:
    """Whether all lie without a gap, in the order of their axes."""
    return False not in [array.flags.c_contiguous for array in arrays]


def _compute(blocks: _Blocks, start: int, stop: int, room: FloatArray) -> None:
    step = blocks.step
    for first in range(start, stop, step):
        blocks.call(first, min(first + step, stop), room)


def _on_lanes(blocks: _Blocks, rooms: FloatArray, lanes: int) -> None:
    def take(lane: int, start: int, stop: int) -> None:
        _compute(blocks, start, stop, rooms[lane])

    share(take, parts_of(blocks.length, PART_BLOCKS * blocks.step), lanes)


def parts_of(length: int, step: int) -> list[tuple[int, int]]:
    """The pieces of 0 to `length`: where each starts and stops."""
    return [(start, min(start + step, length)) for start in range(0, length, step)]


class _FlatBlocks:
    """Arrays without gaps, cut as if each were of one axis.

    Attributes:
        length: what is cut.
        step: of it, what a block has.
        elements: the most that a block has.
    """

    def __init__(
        self, function: Callable[..., Any], arrays: tuple[FloatArray, ...], elements: int
    ) -> None:
        self._function = function
        self._arrays = [array.reshape(-1) for array in arrays]
        self.length = arrays[0].size
        self.step = self.elements = max(1, min(elements, self.length))

    def call(self, start: int, stop: int, room: FloatArray) -> None:
        """Compute the block from where to where, given room for its intermediates."""
        if stop - start < self.elements:
            room = room[:, : stop - start]
        self._function(*[array[start:stop] for array in self._arrays], room)


class _AxisBlocks:
    """Any arrays, cut along their longest axis; attributes as in `_FlatBlocks`."""

    def __init__(
        self, function: Callable[..., Any], arrays: tuple[FloatArray, ...], elements: int
    ) -> None:
        self._function, self._arrays = function, arrays
        shape, size = arrays[0].shape, arrays[0].size
        axis = int(np.argmax(shape))
        self._before = (slice(None),) * axis
        self.length = shape[axis]
        across = max(1, size // max(1, self.length))
        self.step = min(self.length, max(1, elements // across))
        self.elements = self.step * across

    def call(self, start: int, stop: int, room: FloatArray) -> None:
        """Compute the block from where to where, given room for its intermediates."""
        cut = [array[(*self._before, slice(start, stop))] for array in self._arrays]
        self._function(*cut, _laid_out_like(cut[-1], room))


_Blocks = _FlatBlocks | _AxisBlocks


def _laid_out_like(x: FloatArray, room: FloatArray) -> FloatArray:
    """Room for a block of x, its axes in the order in which those of x lie in memory.

    As `np.empty_like` has them: of two nan NumPy's loops keep one or the other by the strides.
    """
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    packed = room[:, : x.size].reshape(len(room), *[x.shape[axis] for axis in order])
    return packed.transpose(0, *[1 + order.index(axis) for axis in range(x.ndim)])
