"""Where two arrays first differ, bit for bit, and by how much."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckptcli.measure.difference import Difference

SPREADS_ALLOWED = 4.0
"""Two runs measure a spread of many; values may lie this many of it apart."""


def relative_distance(expected: Any, found: Any) -> float:
    """The largest distance of two elements, relative to the largest element; nan is at nan."""
    apart = np.abs(np.subtract(expected, found, dtype=np.float64))
    farthest = float(np.nanmax(apart, initial=0.0))
    largest = float(np.nanmax(np.abs(expected), initial=0.0))
    return farthest / largest if farthest else 0.0


def farthest_difference(expected: Any, found: Any) -> Difference:
    """Where two arrays of floats lie farthest apart; what is not a number is farther than all.

    Arrays of another shape differ at the empty index.
    """
    if expected.shape != found.shape:
        return Difference((), float(expected.size), float(found.size), None)
    apart = np.abs(np.subtract(expected, found, dtype=np.float64))
    place = np.unravel_index(int(np.argmax(np.where(np.isnan(apart), np.inf, apart))), apart.shape)
    element = tuple(int(i) for i in place)
    before, after = float(expected[element]), float(found[element])
    distance = abs(after - before) / float(np.spacing(np.abs(expected[element])))
    return Difference(element, before, after, distance if np.isfinite(distance) else None)


def first_difference(expected: Any, found: Any, spread: float | None = None) -> Difference | None:
    """None if both have the same shape, dtype and bits; -0.0 differs from 0.0, nan not from nan.

    With a spread, of a library whose runs differ, None also for arrays that lie no further apart
    than a few spreads and one rounding. Arrays of another shape or dtype differ at once, at the
    empty index.
    """
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return Difference((), float(expected.size), float(found.size), None)
    as_bits = np.dtype(f"u{expected.dtype.itemsize}")
    one = np.ascontiguousarray(expected).view(as_bits)
    other = np.ascontiguousarray(found).view(as_bits)
    unequal = (one != other) & ~(np.isnan(expected) & np.isnan(found))
    if not unequal.any():
        return None
    if spread is not None:
        allowed = SPREADS_ALLOWED * spread + float(np.finfo(expected.dtype).eps)
        if relative_distance(expected, found) <= allowed:
            return None
    element = tuple(int(i) for i in np.argwhere(unequal)[0])[: expected.ndim]
    before, after = float(expected[element]), float(found[element])
    spacing = float(np.spacing(np.abs(expected[element])))
    distance = abs(after - before) / spacing
    return Difference(element, before, after, distance if np.isfinite(distance) else None)
