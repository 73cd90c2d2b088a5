"""Element-wise kernels in blocks that stay in cache.

A kernel of several steps over a whole array would stream every intermediate through memory and
hold it at full size; block by block the intermediates stay in the second-level cache.

Invariant: what a kernel takes beside its result follows from shapes alone, not from the number of
lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckptcli.backends.lanes import MOST_LANES, can_share, share

FloatArray = NDArray[Any]

BLOCK_ELEMENTS = 32768
"""128 KiB of float32: three operands of it fit a second-level cache of 512 KiB."""

LARGE_ELEMENTS = 2**19
"""From here on waking a thread is worth it."""

LARGE_BLOCK_BYTES = 240 * 1024
"""A block of a large array: long enough that lanes seldom wait for the interpreter's lock, and four
of them, two of each lane, take less than 1 MiB."""

PART_BLOCKS = 2
"""What a lane takes at a time."""


@cache
def filled_block(value: float, dtype: np.dtype[Any], elements: int) -> FloatArray:
    """A block of `value`: NumPy's minimum is three times faster with it than with a scalar."""
    return np.full(elements, value, dtype=dtype)


def in_blocks(
    kernel: Callable[..., Any],
    out: FloatArray,
    *operands: FloatArray,
    constants: tuple[FloatArray, ...] = (),
    scratch: tuple[np.dtype[Any], ...] | None = None,
    lanes: int = 1,
) -> FloatArray:
    """Call `kernel(out_block, *operand_blocks, *constants, *scratch)`; returns `out`.

    Contiguous arrays are cut flat, and each constant (rank 0) is spread over a block; others are
    cut along their longest axis. `scratch` are the dtypes of the arrays of a block's shape that a
    kernel writes its intermediates to; one that makes arrays itself has None, and runs on one lane.
    """
    is_large = out.size >= LARGE_ELEMENTS and scratch is not None
    elements = LARGE_BLOCK_BYTES // out.itemsize if is_large else BLOCK_ELEMENTS
    blocks = _cut(kernel, (out, *operands), constants, elements)
    if is_large:
        rooms = [_room(blocks, scratch or ()) for _ in range(MOST_LANES)]
        if can_share(lanes):
            _on_lanes(blocks, rooms, lanes)
        else:
            _compute(blocks, 0, blocks.length, rooms[0])
    else:
        _compute(blocks, 0, blocks.length, _room(blocks, scratch or ()))
    return out


def _room(blocks: _Blocks, scratch: tuple[np.dtype[Any], ...]) -> list[FloatArray]:
    return [np.empty(blocks.elements, dtype) for dtype in scratch]


def _compute(blocks: _Blocks, start: int, stop: int, room: list[FloatArray]) -> None:
    step = blocks.step
    for first in range(start, stop, step):
        blocks.call(first, min(first + step, stop), room)


def _on_lanes(blocks: _Blocks, rooms: list[list[FloatArray]], lanes: int) -> None:
    def take(lane: int, start: int, stop: int) -> None:
        _compute(blocks, start, stop, rooms[lane])

    share(take, parts_of(blocks.length, PART_BLOCKS * blocks.step), lanes)


def parts_of(length: int, step: int) -> list[tuple[int, int]]:
    """The pieces of 0 to `length`: where each starts and stops."""
    return [(start, min(start + step, length)) for start in range(0, length, step)]


@dataclass(slots=True)
class _FlatBlocks:
    """Contiguous arrays, cut as if each were of one axis.

    Attributes:
        arrays: flat, what is written first.
        filled: a block of each constant.
        length: what is cut.
        step: of it, what a block has.
        elements: the most that a block has.
    """

    kernel: Callable[..., Any]
    arrays: list[FloatArray]
    filled: list[FloatArray]
    length: int
    step: int
    elements: int

    def call(self, start: int, stop: int, room: list[FloatArray]) -> None:
        """Compute the block from where to where, given its scratch."""
        whole = (*self.filled, *room)
        if stop - start < self.elements:
            whole = tuple([block[: stop - start] for block in whole])
        self.kernel(*[array[start:stop] for array in self.arrays], *whole)


@dataclass(slots=True)
class _AxisBlocks:
    """Any arrays, cut along their longest axis; attributes as in `_FlatBlocks`."""

    kernel: Callable[..., Any]
    arrays: tuple[FloatArray, ...]
    constants: tuple[FloatArray, ...]
    before: tuple[slice, ...]
    length: int
    step: int
    elements: int

    def call(self, start: int, stop: int, room: list[FloatArray]) -> None:
        """Compute the block from where to where, given its scratch."""
        cut = [array[(*self.before, slice(start, stop))] for array in self.arrays]
        first = cut[0]
        shaped = [s[: first.size].reshape(first.shape) for s in room]
        self.kernel(*cut, *self.constants, *shaped)


_Blocks = _FlatBlocks | _AxisBlocks


def _cut(
    kernel: Callable[..., Any],
    arrays: tuple[FloatArray, ...],
    constants: tuple[FloatArray, ...],
    elements: int,
) -> _Blocks:
    shape, size = arrays[0].shape, arrays[0].size
    if all(array.flags.c_contiguous for array in arrays):
        flat = [array.reshape(-1) for array in arrays]
        filled = [filled_block(value.item(), value.dtype, elements) for value in constants]
        return _FlatBlocks(kernel, flat, filled, size, elements, elements)
    axis = int(np.argmax(shape))
    length, before = shape[axis], (slice(None),) * axis
    across = max(1, size // max(1, length))
    step = max(1, elements // across)
    return _AxisBlocks(kernel, arrays, constants, before, length, step, step * across)
