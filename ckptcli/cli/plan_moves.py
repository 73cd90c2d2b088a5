"""What a plan may move to the host: `--host-memory`, and what that costs by `--transfer`.

A move has to have a price in what computations cost, which no figure of a program tells: a rate
where that is time, and so many operations a byte where it is a number of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ckptcli.errors import UsageError
from ckptcli.planning.tape.moving import NOTHING_MOVES, Moving
from ckptcli.units import parse_size, parse_whole_bytes

if TYPE_CHECKING:
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.planning.problems.base import Number

A_SECOND = "/s"


def moving_of(options: PlanOptions, cost: str) -> Moving:
    """What the options allow, at a price in `cost`; nothing without `--host-memory`.

    Raises:
        UsageError: no size, no price, or a price in another unit than that of costs.
    """
    text, transfer = options.host.host_memory_text, options.host.transfer_text
    if text is None:
        return NOTHING_MOVES
    try:
        host_bytes = parse_whole_bytes(text)
    except ValueError:
        raise UsageError(f"--host-memory `{text}` is no size", "give one such as 2GiB") from None
    if host_bytes <= 0:
        raise UsageError(f"--host-memory {text} is no room", "give a size above 0, or leave it out")
    if transfer is None:
        raise UsageError(
            "--host-memory needs what a move costs, beside what is computed again",
            f"add {_example(cost)}",
        )
    return Moving(host_bytes, _byte_cost(transfer, cost))


def _byte_cost(text: str, cost: str) -> Number:
    """Of one byte one way, in the unit of `--cost`."""
    is_rate = text.endswith(A_SECOND)
    if is_rate != (cost == "time"):
        unit = "a rate" if is_rate else "a number a byte"
        raise UsageError(
            f"--transfer {text} is {unit}, and costs are {_UNITS[cost]}",
            f"give {_example(cost)}",
        )
    try:
        found = parse_size(text.removesuffix(A_SECOND)) if is_rate else float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise UsageError(f"--transfer `{text}` is no price of a byte", f"give {_example(cost)}")
    if is_rate:
        return 1 / found
    return int(found) if found == int(found) else found


_UNITS = {"time": "seconds", "flops": "floating-point operations", "count": "numbers of ops"}


def _example(cost: str) -> str:
    if cost == "time":
        return "--transfer 25GB/s"
    if cost == "flops":
        return "--transfer 100, so many operations a byte, or --transfer 25GB/s with --cost time"
    return "--transfer 0.001, so many ops a byte"
