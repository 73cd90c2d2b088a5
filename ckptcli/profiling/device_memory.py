"""A limit on memory that is not the machine's: that of a device which is not at hand.

Invariant: what is held against it is the peak as it is told elsewhere, the ledger's and the
workspace of kernels on top.
"""

from __future__ import annotations

from ckptcli.errors import UsageError
from ckptcli.measure.memory import Memory
from ckptcli.measure.record import Failure
from ckptcli.profiling.out_of_memory import PassOutOfMemory
from ckptcli.units import exact_size, parse_whole_bytes


def limit_of(text: str | None) -> int | None:
    """The bytes of `--device-memory`; None where it is not given.

    Raises:
        UsageError: it is no size.
    """
    if text is None:
        return None
    try:
        limit_bytes = parse_whole_bytes(text)
    except ValueError:
        limit_bytes = 0
    if limit_bytes <= 0:
        raise UsageError(f"--device-memory `{text}` is no size above 0", "give one, such as 80GB")
    return limit_bytes


def check_limit(strategy: str, memory: Memory, limit_bytes: int | None) -> None:
    """Refuse a pass whose peak is above the limit.

    Raises:
        PassOutOfMemory: with what was live at its peak.
    """
    peak_bytes, live = memory.peak_bytes, memory.peak_live
    if limit_bytes is None or peak_bytes is None or live is None or peak_bytes <= limit_bytes:
        return
    message = (
        f"a peak of {exact_size(peak_bytes)} does not fit in --device-memory of "
        f"{exact_size(limit_bytes)}"
    )
    raise PassOutOfMemory(Failure(strategy, "the memory pass", message, live))
