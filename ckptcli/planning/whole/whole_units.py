"""Sizes and costs as whole numbers small enough for a solver, which adds thousands of them.

Invariant: sizes are never rounded down nor a budget up, so that what fits there fits here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd

from ckptcli.planning.problems.base import Number

LARGEST = 1 << 40


@dataclass(frozen=True, slots=True)
class Units:
    """How many of the problem's units one of the solver's is."""

    unit: Fraction

    def up(self, value: Number) -> int:
        """The least whole number of them that is enough."""
        return ceil(Fraction(value) / self.unit)

    def down(self, value: Number) -> int:
        """The largest that `value` is enough for, at most twice `LARGEST`."""
        return min(floor(Fraction(value) / self.unit), 2 * LARGEST)

    def near(self, value: Number) -> int:
        """The nearest."""
        return round(Fraction(value) / self.unit)


def units_for(values: Sequence[Number]) -> Units:
    """Their greatest common divisor; a larger unit where that makes numbers above `LARGEST`, or
    where they are not whole.
    """
    most = Fraction(max(values, default=0))
    if all(isinstance(value, int) for value in values):
        whole = gcd(*(int(value) for value in values)) or 1
        if most / whole <= LARGEST:
            return Units(Fraction(whole))
    return Units(most / LARGEST if most else Fraction(1))
