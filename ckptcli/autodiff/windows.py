"""Sliding windows along one axis, and their adjoint.

Several axes are done one after the other; every function is of the array API standard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of `size` elements `dilation` apart, one every `stride` elements."""

    size: int
    stride: int = 1
    dilation: int = 1

    @property
    def span(self) -> int:
        """From the first element to behind the last."""
        return (self.size - 1) * self.dilation + 1

    def count(self, length: int) -> int:
        """How many windows fit.

        Raises:
            ValueError: not one, or a number that is not positive.
        """
        self.check()
        if length < self.span:
            raise ValueError(f"a window of {self.span} does not fit into {length} elements")
        return (length - self.span) // self.stride + 1

    def missing(self, length: int) -> int:
        """How many elements the last window lacks if it may reach over the end: Burn's ceil mode.

        As in Burn, a window that holds nothing but what is missing counts too.

        Raises:
            ValueError: a number that is not positive.
        """
        self.check()
        return -(length - self.span) % self.stride if length > self.span else self.span - length

    def check(self) -> None:
        """Refuse what is no window.

        Raises:
            ValueError: a number that is not positive.
        """
        if min(self.size, self.stride, self.dilation) < 1:
            raise ValueError(f"size, stride and dilation must be positive, got {self}")


def windows(xp: Any, x: Any, dim: int, window: Window) -> Any:
    """x with `dim` counting windows and each window as a new last axis."""
    length = x.shape[dim]
    count = window.count(length)
    starts = xp.reshape(xp.multiply(xp.arange(count), window.stride), (count, 1))
    inside = xp.reshape(xp.multiply(xp.arange(window.size), window.dilation), (1, window.size))
    positions = xp.reshape(xp.add(starts, inside), (count * window.size,))
    elements = xp.take(x, positions, dim)
    split = xp.reshape(elements, (*x.shape[:dim], count, window.size, *x.shape[dim + 1 :]))
    axes = [axis for axis in range(len(split.shape)) if axis != dim + 1]
    return xp.permute_dims(split, (*axes, dim + 1))


def fold(xp: Any, parts: Any, dim: int, window: Window, length: int) -> Any:
    """The adjoint of `windows`: each element of a window added to where it was taken from."""
    count = parts.shape[dim]
    shape = (*parts.shape[:dim], length, *parts.shape[dim + 1 : -1])
    total = xp.zeros(shape, parts)
    before = (slice(None),) * dim
    for position in range(window.size):
        start = position * window.dilation
        stop = start + (count - 1) * window.stride + 1
        part = xp.take_slices(parts, (..., slice(position, position + 1)))
        part = xp.reshape(part, parts.shape[:-1])
        total = xp.add_slices(total, (*before, slice(start, stop, window.stride)), part)
    return total


def pad(xp: Any, x: Any, before: tuple[int, ...], after: tuple[int, ...], fill: float = 0.0) -> Any:
    """x with `fill` around its last axes."""
    if not any(before) and not any(after):
        return x
    leading = len(x.shape) - len(before)
    sizes = x.shape[leading:]
    padded = tuple(b + size + a for b, size, a in zip(before, sizes, after))
    middle = tuple(slice(b, b + size) for b, size in zip(before, sizes))
    slices = (slice(None),) * leading + middle
    return xp.put_slices((*x.shape[:leading], *padded), slices, x, fill)
