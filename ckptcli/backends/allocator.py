"""Asks the C library to reuse freed memory instead of returning it to the system.

glibc maps every large array afresh and unmaps it when it is freed, so that each new one costs a
page fault for every 4 KiB: a quarter of the time of a silu layer with n = 1024
(`benchmarks/engine.py --no-reuse`). Kept on the heap, the next array takes the place of the last.
Elsewhere than on glibc nothing is changed.
"""

from __future__ import annotations

import ctypes
import platform

_TRIM_THRESHOLD = -1
_MMAP_MAX = -4
_KEEP_BYTES = 2**31 - 1


def reuse_freed_memory() -> bool:
    """Tune the allocator of this process; returns whether it could be."""
    if platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, _KEEP_BYTES))


def release_freed_memory() -> bool:
    """Give what is freed back to the system; returns whether it could be."""
    if platform.libc_ver()[0] != "glibc":
        return False
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return False
    trim(0)
    return True
