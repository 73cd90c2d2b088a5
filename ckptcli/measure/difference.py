"""Two figures that should be one: an element and what became of it, a derivative and another."""

from __future__ import annotations

from dataclasses import dataclass

from ckptcli.measure.fields import derived

TOLERANCE = 1e-6
"""A gradient further off than this, and than ten times the scatter, does not agree."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An element at which two arrays differ.

    Attributes:
        element: Where it is.
        expected, found: What it was, and what it became.
        ulp: How many spacings of the dtype lie between; null where one is not a number.
    """

    element: tuple[int, ...]
    expected: float
    found: float
    ulp: float | None

    def __str__(self) -> str:
        size = "not a number" if self.ulp is None else f"{self.ulp:.3g} ulp"
        return f"element {list(self.element)}: {self.expected!r} became {self.found!r} ({size})"


@dataclass(frozen=True, slots=True)
class DirectionalDifference:
    """One direction: the gradient's derivative beside that of finite differences of the loss.

    Attributes:
        gradient, difference: Both derivatives.
        scatter: How far the steps of the difference lie apart, as a share.
        parameters: Those that the direction moves.
        reason: Why nothing can be concluded from it; null where something can.
    """

    gradient: float
    difference: float
    scatter: float
    parameters: tuple[str, ...] = ()
    reason: str | None = None

    @property
    @derived
    def apart(self) -> float:
        """How far both are apart, as a share of the larger."""
        scale = max(abs(self.gradient), abs(self.difference))
        return abs(self.gradient - self.difference) / scale if scale else 0.0

    @property
    def is_usable(self) -> bool:
        """Whether anything can be concluded."""
        return self.reason is None

    @property
    @derived
    def agrees(self) -> bool:
        """Whether gradient and difference agree as far as the difference can tell."""
        return self.apart <= max(TOLERANCE, 10.0 * self.scatter)


@dataclass(frozen=True, slots=True)
class BesideTheory:
    """A derivative beside the exact one.

    Attributes:
        gradient, exact: Both.
        allowed: They agree if they are this far apart at most, as a share of the exact one.
    """

    gradient: float
    exact: float
    allowed: float

    @property
    @derived
    def apart(self) -> float:
        """As a share of the exact one."""
        return abs(self.gradient - self.exact) / abs(self.exact) if self.exact else float("inf")

    @property
    @derived
    def agrees(self) -> bool:
        """Whether the gradient is as near to theory as the program can be."""
        return self.apart <= self.allowed
