"""Exact polynomials of counts, recovered from few places and held against the rest.

Invariant: a polynomial that is given is right at every place, to the byte, and there is at least
one place, and one value of each variable, that it was not made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

Exponents = tuple[int, ...]
Place = tuple[int, ...]
"""The value of each variable, in the order of their names."""

MOST_DEGREE = {1: 6, 2: 4}
"""Of all variables together, by how many there are; of more variables `DEGREE_OF_MANY`."""

DEGREE_OF_MANY = 3


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A polynomial in several variables.

    Attributes:
        names: the variables.
        terms: exponents of the variables -> coefficient, none of them 0; highest degree first.
    """

    names: Sequence[str]
    terms: Mapping[Exponents, Fraction]

    def at(self, place: Place) -> Fraction:
        """Its value."""
        return sum((c * _power(place, e) for e, c in self.terms.items()), Fraction(0))

    @property
    def text(self) -> str:
        """`68 n^2 layers + 8`; `0` for none."""
        parts = [_term(self.names, e, c) for e, c in self.terms.items()]
        return " + ".join(parts).replace("+ -", "- ") or "0"


@dataclass(frozen=True, slots=True)
class Recovered:
    """A polynomial and what is known of it.

    Attributes:
        made_of: how many places its coefficients follow from.
        held_at: at how many others it is right.
    """

    polynomial: Polynomial
    made_of: int
    held_at: int


def recovered(names: Sequence[str], known: Mapping[Place, int]) -> Recovered | None:
    """The polynomial of the lowest degree that is right at all places; None if there is none.

    It is made of the smallest places that determine it.
    """
    if len(known) < 2:
        return None
    places = sorted(known, key=lambda place: (prod(place), place))
    for degree in range(MOST_DEGREE.get(len(names), DEGREE_OF_MANY) + 1):
        system = _System(list(_monomials(places, degree)))
        for place in places:
            system.add(place, known[place])
            if system.is_full:
                break
        if system.rank >= len(places):
            return None
        found = system.solution(names)
        if all(found.at(place) == count for place, count in known.items()):
            return Recovered(found, system.rank, len(places) - system.rank)
    return None


def _monomials(places: Sequence[Place], degree: int) -> Iterator[Exponents]:
    """Those of at most this degree that so many values of each variable can tell apart, with one
    value of each left to hold them against: through three values there is a parabola whatever they
    are.
    """
    counts = [len(set(values)) for values in zip(*places)]
    ranges = [range(min(degree, max(0, count - 2)) + 1) for count in counts]
    yield from sorted((e for e in product(*ranges) if sum(e) <= degree), key=lambda e: (sum(e), e))


def _power(place: Place, exponents: Exponents) -> int:
    return prod(value**exponent for value, exponent in zip(place, exponents))


def _term(names: Sequence[str], exponents: Exponents, coefficient: Fraction) -> str:
    powers = [
        name if exponent == 1 else f"{name}^{exponent}"
        for name, exponent in zip(names, exponents)
        if exponent
    ]
    if powers and abs(coefficient) == 1:
        return f"{'-' if coefficient < 0 else ''}{' '.join(powers)}"
    return " ".join([str(coefficient), *powers])


class _System:
    """Linear equations, one a place, of which those are kept that say something new."""

    def __init__(self, monomials: Sequence[Exponents]) -> None:
        self._monomials = monomials
        self._rows: dict[int, list[Fraction]] = {}
        """Column of its first entry, which is 1 -> row, the value at its end."""

    @property
    def rank(self) -> int:
        return len(self._rows)

    @property
    def is_full(self) -> bool:
        """Whether no further equation says anything new."""
        return self.rank == len(self._monomials)

    def add(self, place: Place, value: int) -> None:
        """Keep the equation of a place, unless the others say its left side already."""
        row = [Fraction(_power(place, e)) for e in self._monomials] + [Fraction(value)]
        for column, kept in self._rows.items():
            if row[column]:
                row = _less(row, row[column], kept)
        first = next((c for c, entry in enumerate(row[:-1]) if entry), None)
        if first is None:
            return
        row = [entry / row[first] for entry in row]
        self._rows = {
            c: _less(kept, kept[first], row) if kept[first] else kept
            for c, kept in self._rows.items()
        }
        self._rows[first] = row

    def solution(self, names: Sequence[str]) -> Polynomial:
        """What the equations say; a monomial that they leave free has no part in it."""
        terms = {self._monomials[c]: row[-1] for c, row in self._rows.items() if row[-1]}
        return Polynomial(names, dict(sorted(terms.items(), key=lambda t: (-sum(t[0]), t[0]))))


def _less(row: Sequence[Fraction], factor: Fraction, other: Sequence[Fraction]) -> list[Fraction]:
    return [entry - factor * taken for entry, taken in zip(row, other)]
