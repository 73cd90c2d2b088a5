"""Element-wise kernels in blocks that stay in cache.

A kernel of several steps over a whole array would stream every intermediate through memory and
hold it at full size; block by block the intermediates stay in the second-level cache.

Invariant: what a kernel takes beside its result follows from shapes alone, not from the number of
lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

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
    is_flat = all(array.flags.c_contiguous for array in (out, *operands))
    cut = _flat_blocks if is_flat else _blocks_along_an_axis
    blocks = cut(kernel, (out, *operands), constants, elements)
    rooms = [
        [np.empty(blocks.elements, dtype) for dtype in scratch or ()]
        for _ in range(MOST_LANES if is_large else 1)
    ]
    step, call = blocks.step, blocks.call

    def take(lane: int, start: int, stop: int) -> None:
        room = rooms[lane]
        for first in range(start, stop, step):
            call(first, min(first + step, stop), room)

    if is_large and can_share(lanes):
        share(take, parts_of(blocks.length, PART_BLOCKS * step), lanes)
    else:
        take(0, 0, blocks.length)
    return out


def parts_of(length: int, step: int) -> list[tuple[int, int]]:
    """The pieces of 0 to `length`: where each starts and stops."""
    return [(start, min(start + step, length)) for start in range(0, length, step)]


class _Blocks(NamedTuple):
    """How arrays are cut.

    Attributes:
        call: computes the block from where to where, given its scratch.
        length: what is cut.
        step: of it, what a block has.
        elements: the most that a block has.
    """

    call: Callable[[int, int, list[FloatArray]], Any]
    length: int
    step: int
    elements: int


def _flat_blocks(
    kernel: Callable[..., Any],
    arrays: tuple[FloatArray, ...],
    constants: tuple[FloatArray, ...],
    elements: int,
) -> _Blocks:
    flat = [array.reshape(-1) for array in arrays]
    filled = [filled_block(value.item(), value.dtype, elements) for value in constants]

    def call(start: int, stop: int, room: list[FloatArray]) -> None:
        whole = (*filled, *room)
        if stop - start < elements:
            whole = tuple(block[: stop - start] for block in whole)
        kernel(*[array[start:stop] for array in flat], *whole)

    return _Blocks(call, flat[0].size, elements, elements)


def _blocks_along_an_axis(
    kernel: Callable[..., Any],
    arrays: tuple[FloatArray, ...],
    constants: tuple[FloatArray, ...],
    elements: int,
) -> _Blocks:
    shape, size = arrays[0].shape, arrays[0].size
    axis = int(np.argmax(shape))
    length, before = shape[axis], (slice(None),) * axis
    across = max(1, size // max(1, length))
    step = max(1, elements // across)

    def call(start: int, stop: int, room: list[FloatArray]) -> None:
        cut = [array[(*before, slice(start, stop))] for array in arrays]
        first = cut[0]
        kernel(*cut, *constants, *[s[: first.size].reshape(first.shape) for s in room])

    return _Blocks(call, length, step, step * across)
