"""What the fuzzer of ops draws: a program of one op, its operands, and PyTorch's form of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]
Random = np.random.Generator

SPECIAL = (
    *(0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 1.2e-38, 1e-20, -1e-20, 1e20),
    *(-1e20, 1e38, -1e38, 3e38, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 100.0, -100.0, 88.0, -88.0),
    *(20.0, -20.0, 10.0, 0.1, 5.0, 1e-8, -1e-8, 1e-3, 30.0, -6.0, 6.0, 0.75, -0.75, 1e4),
)
WHOLE = (0.0, 1.0, -1.0, 2.0, 0.5, -2.0, 3.0)


@dataclass(frozen=True)
class Program:
    """One op on operands that are to be drawn.

    Attributes:
        ours, theirs: the op of tensors, and PyTorch's form of it in float64.
        shapes: of the operands.
        kind: which values they have: any, mild (small, tied, an infinity or nan now and then),
            finite (the same without) or distinct.
        rtol: how far rounding in float32 may lead, relative to the value.
        atol: the same, absolute: for sums, in which digits cancel.
        skipped: (operands, position) -> where the gradient is not compared.
    """

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    shapes: Sequence[Shape]
    kind: str = "any"
    rtol: float = 2e-5
    atol: float = 0.0
    skipped: Callable[[Sequence[Array], int], Any] | None = None
    value_skipped: Callable[[Sequence[Array]], Any] | None = None


def drawn_shape(rng: Random, least: int = 1, most: int = 3, empty: bool = True) -> Shape:
    sizes = [1, 2, 3, 4, 5] + ([0] if empty and rng.random() < 0.15 else [])
    return tuple(int(rng.choice(sizes)) for _ in range(rng.integers(least, most + 1)))


def broadcast_shapes(rng: Random, count: int) -> list[Shape]:
    """Shapes that broadcast to one: leading dims left out, some stretched from 1."""
    whole = drawn_shape(rng)
    shapes = []
    for _ in range(count):
        kept = whole[int(rng.integers(0, len(whole))) :] if rng.random() < 0.3 else whole
        shapes.append(tuple(1 if rng.random() < 0.2 else size for size in kept))
    return shapes


def drawn_values(rng: Random, shape: Shape, kind: str) -> Array:
    count = int(np.prod(shape))
    if kind == "any":
        wide = rng.normal(size=count) * 10.0 ** rng.uniform(-3, 3, count)
        values = np.where(rng.random(count) < 0.6, rng.choice(SPECIAL, count), wide)
    elif kind == "distinct":
        values = rng.permutation(count) / 4.0 - count / 8.0
    else:
        values = np.where(rng.random(count) < 0.5, rng.choice(WHOLE, count), rng.normal(size=count))
        if kind == "mild" and count and rng.random() < 0.3:
            values[rng.integers(count)] = rng.choice([np.inf, -np.inf, np.nan])
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32).reshape(shape)
