"""Power laws of times, `a n^b`: a line through the logarithms, with an interval for a new place.

Source: ordinary least squares; the interval is the prediction interval of the line, Student's, at
95 %. Invariant: without more places than unknowns there is no law, since nothing would tell how
far it is off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Place: TypeAlias = tuple[float, ...]

_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles by degrees of freedom, from 1."""

_NORMAL = 1.959964

WIDEST = 2.0
"""Of the interval of an exponent: beyond it a time may as well be linear as cubic."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A time by law, seconds, with its 95 % interval.

    Attributes:
        is_extrapolated: whether the place lies outside those that the law is made of.
    """

    time_s: float
    low_s: float
    high_s: float
    is_extrapolated: bool


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """A time as a product of powers.

    Attributes:
        names: the variables.
        factor_s: the time where all variables are 1, seconds.
        exponents: of the variables.
        largest_residual: the farthest that a time is from the law, as a share of it.
        spread: standard deviation of the logarithms around the law.
        inverse: of the normal equations, what is known of the coefficients.
        degrees: places beyond the unknowns.
        ends: the smallest and the largest value of each variable among the places.
    """

    names: Sequence[str]
    factor_s: float
    exponents: Sequence[float]
    largest_residual: float
    spread: float
    inverse: Sequence[Sequence[float]]
    degrees: int
    ends: Sequence[tuple[float, float]]

    @property
    def intervals(self) -> list[tuple[float, float]]:
        """Of each exponent, 95 %."""
        width = student(self.degrees) * self.spread
        ways = [width * math.sqrt(max(0.0, row[i])) for i, row in enumerate(self.inverse)]
        return [(e - way, e + way) for e, way in zip(self.exponents, ways[1:])]

    @property
    def is_told(self) -> bool:
        """Whether the points tell anything: no exponent that is open by more than `WIDEST`."""
        return all(high - low <= WIDEST for low, high in self.intervals)

    @property
    def text(self) -> str:
        """`1.2e-09 s * n^2.87 [2.80 2.94]`."""
        powers = [
            f"{name}^{e:.2f} [{low:.2f} {high:.2f}]"
            for name, e, (low, high) in zip(self.names, self.exponents, self.intervals)
        ]
        return " * ".join([f"{self.factor_s:.3g} s", *powers])

    def at(self, place: Place) -> Prediction:
        """The time at a place whose values are above 0."""
        row = [1.0, *map(math.log, place)]
        middle = sum(c * x for c, x in zip([math.log(self.factor_s), *self.exponents], row))
        leverage = sum(x * y * v for x, vs in zip(row, self.inverse) for y, v in zip(row, vs))
        width = student(self.degrees) * self.spread * math.sqrt(1.0 + max(0.0, leverage))
        is_outside = any(not low <= x <= high for x, (low, high) in zip(place, self.ends))
        low_s, time_s, high_s = (_exp(middle + side * width) for side in (-1, 0, 1))
        return Prediction(time_s, low_s, high_s, is_outside)


def fitted(names: Sequence[str], known: Mapping[Place, float]) -> PowerLaw | None:
    """The law of times, seconds, by place; None where the places do not determine one, or where a
    value or a time is not above 0.
    """
    positive = all(v > 0 for place, time_s in known.items() for v in (*place, time_s))
    unknowns = len(names) + 1
    if not positive or len(known) <= unknowns:
        return None
    rows = [[1.0, *map(math.log, place)] for place in known]
    logs = [math.log(time_s) for time_s in known.values()]
    each = range(unknowns)
    inverse = _inverse([[sum(r[i] * r[j] for r in rows) for j in each] for i in each])
    if inverse is None:
        return None
    right = [sum(r[i] * y for r, y in zip(rows, logs)) for i in range(unknowns)]
    first, *exponents = [sum(v * b for v, b in zip(vs, right)) for vs in inverse]
    residuals = [y - sum(c * x for c, x in zip([first, *exponents], r)) for r, y in zip(rows, logs)]
    degrees = len(known) - unknowns
    return PowerLaw(
        names,
        math.exp(first),
        exponents,
        max(math.expm1(abs(residual)) for residual in residuals),
        math.sqrt(sum(residual**2 for residual in residuals) / degrees),
        inverse,
        degrees,
        [(min(values), max(values)) for values in zip(*known)],
    )


def student(degrees: int) -> float:
    """The 97.5 % quantile of Student's distribution, to three digits."""
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    z = _NORMAL
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def crossing(
    first: PowerLaw, second: PowerLaw, variable: int = 0, others: Mapping[str, float] | None = None
) -> float | None:
    """Where two laws of the same variables meet over one of them, by its position, the others being
    what `others` says by name; None where they do not, or too far away for a number.
    """
    differences = [a - b for a, b in zip(first.exponents, second.exponents)]
    if not differences[variable]:
        return None
    apart = math.log(first.factor_s) - math.log(second.factor_s)
    for name, difference in zip(first.names, differences):
        if name != first.names[variable]:
            apart += difference * math.log((others or {})[name])
    place = -apart / differences[variable]
    return math.exp(place) if abs(place) < 50 else None


def _exp(logarithm: float) -> float:
    return math.exp(min(logarithm, 700.0))


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """By Gauss and Jordan; None of one that has none."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        if abs(rows[pivot][column]) < 1e-9:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [entry / rows[column][column] for entry in rows[column]]
        for i, row in enumerate(rows):
            if i != column:
                rows[i] = [a - row[column] * b for a, b in zip(row, rows[column])]
    return [row[size:] for row in rows]
