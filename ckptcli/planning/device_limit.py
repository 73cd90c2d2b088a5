"""The memory of a device as a limit on a pass and on all that is there beside it.

Invariant: the budget is what the latter leaves; 0 where it leaves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DeviceLimit:
    """What a device's memory is to be enough for.

    Attributes:
        device_bytes: all of it.
        base_bytes: what is there before a pass, without the optimizer's state.
        base: what that is, in words.
        optimizer: whose state is counted, in words; "" for none.
        optimizer_bytes: of that state.
    """

    device_bytes: int
    base_bytes: int
    base: str = "parameters and input"
    optimizer: str = ""
    optimizer_bytes: int = 0

    @property
    def taken_bytes(self) -> int:
        """All that is there beside a pass."""
        return self.base_bytes + self.optimizer_bytes

    @property
    def budget_bytes(self) -> int:
        """What remains for a pass."""
        return max(0, self.device_bytes - self.taken_bytes)

    def to_json(self) -> dict[str, Any]:
        """As `device_memory` of `ckpt.plan/1`."""
        return {
            "device_bytes": self.device_bytes,
            "base_bytes": self.base_bytes,
            "optimizer": self.optimizer or None,
            "optimizer_bytes": self.optimizer_bytes,
            "budget_bytes": self.budget_bytes,
        }
