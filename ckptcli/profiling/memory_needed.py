"""Whether a workload fits in memory, before anything of it is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcli.backends.base import Backend
from ckptcli.backends.dtypes import DTYPES
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import OutOfMemoryError
from ckptcli.measure.machine import available_bytes
from ckptcli.units import exact_size
from ckptcli.workloads.base import Workload

if TYPE_CHECKING:
    from ckptcli.peers.base import Engine

RECORDED_UNDER = "balanced"
"""The strategy of the pass that says what a program costs."""


def check_fits(
    workload: Workload,
    strategies: Sequence[Strategy],
    backend: Backend | None = None,
    engines: Sequence[Engine] = (),
    at_once: bool = False,
) -> None:
    """Refuse a workload that needs more memory than there is, before anything is allocated.

    `at_once` is whether the networks of all strategies and engines are there together, as for timed
    rounds. They share the arrays of the host, unless they are on a device, of another dtype than
    the host has, or of a library that copies what it is given.

    Raises:
        OutOfMemoryError: with the bytes it needs and the bytes there are.
    """
    copies = _copies(workload, strategies, backend, engines) if at_once else 0
    names = [strategy.name for strategy in strategies]
    if any(strategy.needs_recording for strategy in strategies):
        names.append(RECORDED_UNDER)
    needed_bytes = workload.needed_bytes(names) + copies * workload.loaded_bytes
    among = f", parameters and input {copies + 1} times among them" if copies else ""
    what = f"{workload.title} needs at least {exact_size(needed_bytes)}{among}"
    check_bytes(needed_bytes, what, workload.shrink_hint, backend)


def check_bytes(needed_bytes: int, what: str, hint: str, backend: Backend | None) -> None:
    """Refuse what needs more memory than there is; `what` says so, and `hint` what would do.

    Raises:
        OutOfMemoryError: with the bytes that are available.
    """
    free_bytes = None if backend is None else backend.free_bytes()
    free_bytes = available_bytes() if free_bytes is None else free_bytes
    if free_bytes is not None and needed_bytes > free_bytes:
        raise OutOfMemoryError(
            f"{what}, {exact_size(free_bytes)} are available",
            f"{hint}, or --no-memory-check to try all the same",
        )


def _copies(
    workload: Workload,
    strategies: Sequence[Strategy],
    backend: Backend | None,
    engines: Sequence[Engine],
) -> int:
    """How many networks have parameters and input of their own, beside the first."""
    dtype = str(workload.settings.get("dtype", "float32"))
    shares = backend is None or (backend.is_cpu and DTYPES[dtype].host == dtype)
    ours = 0 if shares else len(strategies) * (1 + workload.replays) - 1
    copying = sum(engine.copies_arrays for engine in engines)
    return ours + (copying * _counterparts(strategies, workload) if copying else 0)


def _counterparts(strategies: Sequence[Strategy], workload: Workload) -> int:
    """The strategies that another library has, too."""
    from ckptcli.peers.base import NoPeer, regions_of

    count = 0
    for strategy in strategies:
        try:
            regions_of(strategy, workload.layer_count)
        except NoPeer:
            continue
        count += 1
    return count
