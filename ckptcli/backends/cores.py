"""How many processor cores the process may use."""

from __future__ import annotations

import os


def usable_cores() -> int | None:
    """Those that the system lets the process run on; None where it does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
