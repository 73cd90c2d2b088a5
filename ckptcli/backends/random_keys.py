"""Random numbers from a key: the same key gives the same bits, whatever was drawn in between.

A stream hands out keys, one a draw: the seed and the number of the draw. A draw runs NumPy's
counter-based Philox from the key alone, on the host in float64, so that the bits are the same on
every backend, and a draw that is repeated moves nobody else's stream. What a node has to keep is
the key.

Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ckptcli.errors import EngineError

_BITS_OF_A_DRAW = 128
"""Each draw has this many bits of Philox's 256-bit counter to itself."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What to draw: `uniform` over [first, second), `normal` with mean and deviation, `bernoulli`
    with the probability of 1.
    """

    name: str
    first: float
    second: float = 0.0


@dataclass(frozen=True, slots=True)
class RandomKey:
    """One draw: everything that its values follow from but the shape."""

    seed: int
    index: int
    distribution: Distribution


class KeyStream:
    """The keys of one seed, in order."""

    def __init__(self, seed: int = 0) -> None:
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begin again, from `seed`.

        Raises:
            EngineError: the seed is negative or over 128 bits.
        """
        if not 0 <= seed < 2**128:
            raise EngineError(f"a seed is a whole number from 0 to 2**128 - 1, got {seed}")
        self.value = seed
        self.drawn = 0

    def next(self, distribution: Distribution) -> RandomKey:
        """The key of the next draw."""
        key = RandomKey(self.value, self.drawn, distribution)
        self.drawn += 1
        return key


def draw(key: RandomKey, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The values of a key."""
    bits = np.random.Philox(key=key.seed, counter=key.index << _BITS_OF_A_DRAW)
    generator = np.random.Generator(bits)
    distribution = key.distribution
    if distribution.name == "normal":
        return generator.normal(distribution.first, distribution.second, shape)
    if distribution.name == "uniform":
        return generator.uniform(distribution.first, distribution.second, shape)
    return (generator.random(shape) < distribution.first).astype(np.float64)
