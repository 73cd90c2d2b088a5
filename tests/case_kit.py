"""A case of a gradient test, and the shapes on which ops are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckptcli import Tensor

Array = NDArray[Any]
Shape = tuple[int, ...]
Function = Callable[..., Tensor]


@dataclass(frozen=True)
class Case:
    """`function` of operands of these shapes. Positive operands are drawn from [0.3, 1.7)."""

    function: Function
    shapes: tuple[Shape, ...]
    positive: bool = False

    def operands(self, dtype: str = "float64") -> list[Array]:
        rng = np.random.Generator(np.random.PCG64(7))
        arrays = []
        for shape in self.shapes:
            sign = 1.0 if self.positive else rng.choice([-1.0, 1.0], shape)
            arrays.append((sign * rng.uniform(0.3, 1.7, shape)).astype(dtype))
        return arrays


PAIRS: tuple[tuple[Shape, Shape], ...] = (
    ((3, 4), (3, 4)),
    ((3, 4), (1, 4)),
    ((3, 1), (1, 4)),
    ((1, 1), (3, 4)),
    ((1,), (2, 3)),
    ((2, 1, 3), (4, 1)),
    ((0, 3), (1, 3)),
    ((0, 3), (2, 0, 1)),
)
SHAPES: tuple[Shape, ...] = ((3, 4), (1,), (2, 1, 5), (0, 3))


def pairs(function: Function, positive: bool = False) -> list[Case]:
    return [Case(function, shapes, positive) for shapes in PAIRS]


def alone(function: Function, positive: bool = False) -> list[Case]:
    return [Case(function, (shape,), positive) for shape in SHAPES]


def each_dim(function: Callable[[Tensor, int], Tensor], shapes: Sequence[Shape]) -> list[Case]:
    return [
        Case(lambda x, dim=dim: function(x, dim), (shape,))
        for shape in shapes
        for dim in range(-1, len(shape) - 1)
    ]


def every_third(x: Tensor) -> Array:
    return np.equal(np.arange(np.prod(x.shape)).reshape(x.shape) % 3, 0)


REDUCED: tuple[Shape, ...] = ((3, 4), (1,), (2, 1, 5))
