"""Element-wise kernels in blocks that stay in cache.

A kernel of several steps over a whole array would stream every intermediate through memory and
hold it at full size; block by block the intermediates stay in the second-level cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[Any]

BLOCK_ELEMENTS = 32768
"""128 KiB of float32: three operands of it fit a second-level cache of 512 KiB."""


@cache
def filled_block(value: float, dtype: np.dtype[Any]) -> FloatArray:
    """A block of `value`: NumPy's minimum is three times faster with it than with a scalar."""
    return np.full(BLOCK_ELEMENTS, value, dtype=dtype)


def in_blocks(
    kernel: Callable[..., Any],
    out: FloatArray,
    *operands: FloatArray,
    constants: tuple[FloatArray, ...] = (),
) -> FloatArray:
    """Call `kernel(out_block, *operand_blocks, *constants)`; returns `out`.

    Contiguous arrays are cut flat, and each constant (rank 0) is spread over a block; others are
    cut along their longest axis.
    """
    arrays = (out, *operands)
    if all(array.flags.c_contiguous for array in arrays):
        flat = [array.reshape(-1) for array in arrays]
        blocks = [filled_block(value.item(), value.dtype) for value in constants]
        for start in range(0, out.size, BLOCK_ELEMENTS):
            cut = [array[start : start + BLOCK_ELEMENTS] for array in flat]
            kernel(*cut, *[block[: cut[0].size] for block in blocks])
        return out
    axis = int(np.argmax(out.shape))
    length = out.shape[axis]
    step = max(1, BLOCK_ELEMENTS * length // max(1, out.size))
    for start in range(0, length, step):
        index = (slice(None),) * axis + (slice(start, start + step),)
        kernel(*[array[index] for array in arrays], *constants)
    return out
