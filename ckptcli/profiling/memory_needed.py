"""Whether a workload fits in memory, before anything of it is allocated."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import OutOfMemoryError
from ckptcli.measure.machine import available_bytes
from ckptcli.units import size
from ckptcli.workloads.base import Workload


def check_fits(
    workload: Workload, strategies: Sequence[Strategy], backend: Backend | None = None
) -> None:
    """Refuse a workload that needs more memory than there is, before anything is allocated.

    On a device each strategy has a network of its own; on the host all share the arrays there.

    Raises:
        OutOfMemoryError: with the bytes it needs and the bytes there are.
    """
    needed_bytes = workload.needed_bytes([strategy.name for strategy in strategies])
    if backend is not None and not backend.is_cpu:
        needed_bytes += (len(strategies) - 1) * workload.loaded_bytes
    free_bytes = None if backend is None else backend.free_bytes()
    free_bytes = available_bytes() if free_bytes is None else free_bytes
    if free_bytes is not None and needed_bytes > free_bytes:
        raise OutOfMemoryError(
            f"{workload.title} needs at least {size(needed_bytes)} ({needed_bytes} bytes), "
            f"{size(free_bytes)} ({free_bytes} bytes) are available",
            f"{workload.shrink_hint}, or --no-memory-check to try all the same",
        )
