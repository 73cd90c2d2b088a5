"""Linear maps of one axis each: averages over bins, interpolation.

A map says for each output which elements it is made of, and with which weights. Maps of several
axes are applied one after the other; the adjoint of a map says for each input which outputs it is
in. An element that an output is not made of is not looked at: 0 times infinity is nan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ckptcli.autodiff.op import KEEPS_INPUT, Op
from ckptcli.autodiff.windows import Window
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


@dataclass(frozen=True, slots=True)
class AxisMap:
    """Of each output, the elements that it is made of: index -> weight, none of them 0."""

    length: int
    outputs: tuple[Mapping[int, float], ...]

    @classmethod
    def of(cls, length: int, outputs: Sequence[Mapping[int, float]]) -> AxisMap:
        """The map without weights of 0."""
        return cls(length, tuple({i: w for i, w in each.items() if w} for each in outputs))

    def adjoint(self) -> AxisMap:
        """The map back: of each input, the outputs that it is in."""
        inputs: list[dict[int, float]] = [{} for _ in range(self.length)]
        for place, output in enumerate(self.outputs):
            for index, weight in output.items():
                inputs[index][place] = weight
        return AxisMap(len(self.outputs), tuple(inputs))

    def apply(self, xp: Any, x: Any, axis: int) -> Any:
        """x with `axis` mapped: its elements beside each other, then summed."""
        width = max(1, *map(len, self.outputs))
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        shape = (*before, len(self.outputs), width, *after)
        indices, weights, missing = [], [], []
        for output in self.outputs:
            rest = width - len(output)
            indices += [*output, *[0] * rest]
            weights += [*output.values(), *[1.0] * rest]
            missing += [False] * len(output) + [True] * rest
        beside = (*[1] * axis, len(self.outputs), width, *[1] * len(after))
        elements = xp.reshape(xp.take(x, xp.asindices(indices), axis), shape)
        if any(missing):
            elements = xp.where(xp.reshape(xp.asbool(missing), beside), 0.0, elements)
        weighted = xp.multiply(elements, xp.reshape(xp.array_like(weights, x), beside))
        return xp.reshape(xp.sum_dim(weighted, axis + 1), (*before, len(self.outputs), *after))


MOST_OUTPUTS = 1 << 22
"""Of one axis; a map is written out output by output."""


def _checked(outputs: int) -> int:
    """`outputs` itself.

    Raises:
        ShapeError: too many to be written out.
    """
    if outputs > MOST_OUTPUTS:
        raise ShapeError(
            f"an axis cannot be mapped to {outputs} elements: {MOST_OUTPUTS} are the most",
            "use a smaller output, or less padding",
        )
    return outputs


def apply_maps(xp: Any, x: Any, maps: Sequence[AxisMap]) -> Any:
    """x with each of its last axes mapped."""
    first = len(x.shape) - len(maps)
    for position, each in enumerate(maps):
        x = each.apply(xp, x, first + position)
    return x


def _gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """Linear, so the input that Burn keeps is not looked at."""
    return apply_maps(xp, grad, [each.adjoint() for each in step.params])


def axis_maps_op(name: str) -> Op:
    """An op whose static arguments are the maps of its last axes."""
    return Op(
        name,
        Bound.COMPUTE,
        1,
        forward=lambda xp, x, maps: apply_maps(xp, x, maps),
        backward=_gradient,
        keeps=KEEPS_INPUT,
        flops=lambda operands, output: 2 * math.prod(operands[0]),
    )


@lru_cache(maxsize=256)
def window_means(
    length: int, window: Window, padding: int, with_padding: bool, ceil_mode: bool
) -> AxisMap:
    """The mean of each window over `length` elements with zeros around.

    `with_padding` counts the zeros as elements, but nothing beyond them, which a window may reach
    in `ceil_mode`.
    """
    rows = []
    padded = length + 2 * padding
    missing = window.missing(padded) if ceil_mode else 0
    for index in range(_checked(window.count(padded + missing))):
        first = index * window.stride - padding
        inside = range(max(first, 0), min(first + window.size, length))
        within = min(first + window.size, length + padding) - first
        count = max(1, within if with_padding else len(inside))
        rows.append(dict.fromkeys(inside, 1.0 / count))
    return AxisMap.of(length, rows)


@lru_cache(maxsize=256)
def bin_means(length: int, outputs: int) -> AxisMap:
    """The mean of each of `outputs` bins of nearly equal size, which may overlap by one."""
    rows = []
    for index in range(_checked(outputs)):
        first = index * length // outputs
        last = math.ceil((index + 1) * length / outputs)
        rows.append(dict.fromkeys(range(first, last), 1.0 / (last - first)))
    return AxisMap.of(length, rows)


@lru_cache(maxsize=256)
def nearest(length: int, outputs: int) -> AxisMap:
    """The element at the scaled index, rounded down."""
    return AxisMap.of(
        length, [{index * length // outputs: 1.0} for index in range(_checked(outputs))]
    )


@lru_cache(maxsize=256)
def linear(length: int, outputs: int, align_corners: bool) -> AxisMap:
    """Between the two neighbours; with `align_corners` first and last elements stay."""
    rows = []
    for index in range(_checked(outputs)):
        place = min(max(_place(index, length, outputs, align_corners), 0.0), length - 1.0)
        low = min(int(place), length - 1)
        high = min(low + 1, length - 1)
        weights = {low: 1.0 - (place - low)}
        weights[high] = weights.get(high, 0.0) + (place - low)
        rows.append(weights)
    return AxisMap.of(length, rows)


@lru_cache(maxsize=256)
def cubic(length: int, outputs: int, align_corners: bool) -> AxisMap:
    """A cubic convolution of the four neighbours; the elements at the ends are repeated."""
    rows = []
    for index in range(_checked(outputs)):
        place = _place(index, length, outputs, align_corners)
        low = math.floor(place)
        weights: dict[int, float] = {}
        for neighbour in range(low - 1, low + 3):
            inside = min(max(neighbour, 0), length - 1)
            weights[inside] = weights.get(inside, 0.0) + _keys(abs(place - neighbour))
        rows.append(weights)
    return AxisMap.of(length, rows)


def _place(index: int, length: int, outputs: int, align_corners: bool) -> float:
    """Where among `length` elements an output lies."""
    if align_corners:
        return index * (length - 1) / (outputs - 1) if outputs > 1 else 0.0
    return (index + 0.5) * length / outputs - 0.5


SHARPNESS = -0.75
"""The slope of the cubic kernel at distance 1, as in Burn."""


def _keys(distance: float) -> float:
    """Keys' cubic convolution kernel, for a distance of 2 at most."""
    if distance < 1.0:
        return ((SHARPNESS + 2.0) * distance - (SHARPNESS + 3.0)) * distance * distance + 1.0
    return SHARPNESS * (((distance - 5.0) * distance + 8.0) * distance - 4.0)
