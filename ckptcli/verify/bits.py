"""Where two arrays first differ, bit for bit, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Difference:
    """The first element at which two arrays differ; `ulp` is None where one is not a number."""

    element: tuple[int, ...]
    expected: float
    found: float
    ulp: float | None

    def __str__(self) -> str:
        size = "not a number" if self.ulp is None else f"{self.ulp:.3g} ulp"
        return f"element {list(self.element)}: {self.expected!r} became {self.found!r} ({size})"


def first_difference(expected: Any, found: Any) -> Difference | None:
    """None if both have the same shape, dtype and bits; -0.0 differs from 0.0, nan not from nan.

    Arrays of another shape or dtype differ at once, at the empty index.
    """
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return Difference((), float(expected.size), float(found.size), None)
    as_bits = np.dtype(f"u{expected.dtype.itemsize}")
    one = np.ascontiguousarray(expected).view(as_bits)
    other = np.ascontiguousarray(found).view(as_bits)
    unequal = (one != other) & ~(np.isnan(expected) & np.isnan(found))
    if not unequal.any():
        return None
    element = tuple(int(i) for i in np.argwhere(unequal)[0])
    before, after = float(expected[element]), float(found[element])
    spacing = float(np.spacing(np.abs(expected[element])))
    distance = abs(after - before) / spacing
    return Difference(element, before, after, distance if np.isfinite(distance) else None)
