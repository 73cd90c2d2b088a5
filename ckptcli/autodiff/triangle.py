"""The right-angled triangle of two operands, scaled so that its longest side stays in the range.

Of what the gradients of `hypot` and `atan2` are made: a side's share of the hypotenuse, at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

_RANGES = {
    "float16": (2.0**12, 2.0**-10, 2.0**10),
    "bfloat16": (2.0**120, 2.0**-100, 2.0**40),
    "float32": (2.0**120, 2.0**-100, 2.0**40),
    "float64": (2.0**1000, 2.0**-900, 2.0**200),
}
"""From where on sides are made 16 times shorter; up to where, and how many times, longer."""


@dataclass(frozen=True, slots=True)
class Triangle:
    """The scaled sides and the hypotenuse; `scale` is a power of two for each element."""

    lhs: Any
    rhs: Any
    radius: Any
    scale: Any

    @classmethod
    def of(cls, xp: Any, lhs: Any, rhs: Any) -> Triangle:
        """nan where an operand is, also beside an infinite one."""
        large, small, longer = _RANGES[xp.dtype_name(lhs)]
        longest = xp.maximum(xp.abs(lhs), xp.abs(rhs))
        one = xp.add(xp.zeros_like(longest), 1.0)
        scale = xp.where(xp.greater(longest, large), 1.0 / 16.0, one)
        scale = xp.where(xp.less(longest, small), longer, scale)
        lhs, rhs = xp.multiply(lhs, scale), xp.multiply(rhs, scale)
        radius = xp.maximum(xp.hypot(lhs, rhs), xp.multiply(longest, scale))
        return cls(lhs, rhs, radius, scale)

    def share(self, xp: Any, side: Any) -> Any:
        """side / radius; the sign of an infinite side."""
        infinite = xp.logical_and(xp.equal(xp.abs(side), math.inf), xp.equal(self.radius, math.inf))
        return xp.where(
            infinite, xp.sign(side), xp.divide(side, xp.where(infinite, 1.0, self.radius))
        )

    def share_of_square(self, xp: Any, side: Any) -> Any:
        """side / radius**2 of the sides as they were."""
        return xp.multiply(xp.divide(self.share(xp, side), self.radius), self.scale)
