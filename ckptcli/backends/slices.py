"""Slices with negative steps, for libraries whose views cannot run backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def forward_slices(
    shape: Sequence[int], slices: tuple[Any, ...]
) -> tuple[tuple[Any, ...], list[int]]:
    """The same elements by positive steps, and the axes that are then in reverse order.

    `slices` are for the leading axes, or after an Ellipsis for the last ones.
    """
    if all(part is ... or part.step is None or part.step > 0 for part in slices):
        return slices, []
    first = len(shape) - len(slices) if slices[0] is ... else 0
    forward, reversed_axes = list(slices), []
    for position, part in enumerate(slices):
        if part is ... or part.step is None or part.step > 0:
            continue
        axis = first + position
        taken = range(*part.indices(shape[axis]))
        forward[position] = slice(taken[-1], taken[0] + 1, -taken.step) if taken else slice(0, 0)
        reversed_axes.append(axis)
    return tuple(forward), reversed_axes
