"""The singular value decomposition on NumPy.

Invariant: up to `LARGEST_ON_ONE_THREAD` the bits are the same whatever the number of threads.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckptcli.backends.one_thread import one_thread

AnyArray = NDArray[Any]

LARGEST_ON_ONE_THREAD = 512
"""Beyond it two threads gain on cores of their own: a fifth at n = 768."""

SMALLEST_ON_SEVERAL_THREADS = 33
"""Up to here LAPACK asks for no second thread."""


def svd(x: AnyArray) -> AnyArray:
    """U, s and V of a square matrix below each other, (2n + 1, n); nan where x is not finite."""
    n = len(x)
    is_slower = SMALLEST_ON_SEVERAL_THREADS <= n <= LARGEST_ON_ONE_THREAD
    packed: AnyArray = np.empty((2 * n + 1, n), x.dtype)
    try:
        with one_thread() if is_slower else nullcontext():
            packed[:n], packed[n], v = np.linalg.svd(x)
    except np.linalg.LinAlgError:
        packed.fill(np.nan)
    else:
        packed[n + 1 :] = v.T
    return packed
