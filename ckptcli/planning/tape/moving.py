"""What a plan may move to the memory of the host, and what that costs.

A value is moved when it is made and comes back in the backward pass, each in one piece; the device
waits for both, so that costs of moves and of computations add up.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptcli.planning.problems.base import Number


@dataclass(frozen=True, slots=True)
class Moving:
    """The host.

    Attributes:
        host_bytes: the most that may be there at once.
        byte_cost: of moving a byte one way, in what computations cost.
    """

    host_bytes: int = 0
    byte_cost: Number = 0


NOTHING_MOVES = Moving()
