"""Functions of a namespace composed of others, for a library with NumPy's names that lacks them.

`np` is the library throughout. Each gives the bits that NumPy's own function gives where it only
chooses or moves elements.
"""

from __future__ import annotations

import math
from typing import Any

DENSITY_END = 40.0
"""Beyond it the normal density is 0 in float64; x * x could overflow, and 0 * infinity is nan."""

Array = Any


class Composed:
    """The functions over one library.

    `erf` and `erfc` are the library's error function and its complement, which may be of a wider
    dtype than what they are given.
    """

    def __init__(self, np: Any, erf: Any, erfc: Any) -> None:
        self.np = np
        self._erf = erf
        self._erfc = erfc

    def max_dim(self, x: Array, dim: int) -> Array:
        return self.np.amax(x, axis=dim, keepdims=True)

    def min_dim(self, x: Array, dim: int) -> Array:
        return self.np.amin(x, axis=dim, keepdims=True)

    def cumulative_max(self, x: Array, dim: int) -> Array:
        return self._running(self.np.maximum, x, dim)

    def cumulative_min(self, x: Array, dim: int) -> Array:
        return self._running(self.np.minimum, x, dim)

    def _running(self, choose: Any, x: Array, dim: int) -> Array:
        """Each pass looks back twice as far as the one before: log2 of the length of them."""
        running, length, distance = x.copy(), x.shape[dim], 1
        before = (slice(None),) * dim
        while distance < length:
            later = (*before, slice(distance, None))
            earlier = (*before, slice(None, length - distance))
            running[later] = choose(running[later], running[earlier].copy())
            distance *= 2
        return running

    def put_along_dim(
        self, shape: tuple[int, ...], indices: Array, values: Array, dim: int
    ) -> Array:
        whole = self.np.zeros(shape, dtype=values.dtype)
        places = [
            indices
            if axis == dim
            else self.np.arange(size).reshape([-1 if a == axis else 1 for a in range(len(shape))])
            for axis, size in enumerate(indices.shape)
        ]
        whole[tuple(places)] = values
        return whole

    def scatter(self, flat: Array, positions: Array, values: Array, update: str) -> Array:
        """In rounds: the first element of each place, then the second, ..., so that order counts.

        Within a round no place comes twice, which libraries leave open.
        """
        changed = flat.copy()
        turn = self._turns(positions)
        if update == "assign":
            turn_of_last = self.np.zeros(flat.shape, dtype=turn.dtype)
            for number in range(self._rounds(turn)):
                turn_of_last[positions[turn == number]] = number
            chosen = turn == turn_of_last[positions]
            changed[positions[chosen]] = values[chosen]
            return changed
        apply = self._updates()[update]
        for number in range(self._rounds(turn)):
            places, here = positions[turn == number], values[turn == number]
            changed[places] = apply(changed[places], here)
        return changed

    def _updates(self) -> dict[str, Any]:
        np = self.np
        return {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}

    def _rounds(self, turn: Array) -> int:
        return int(turn.max()) + 1 if turn.size else 0

    def _turns(self, positions: Array) -> Array:
        """How many earlier elements have the same position, for each."""
        np = self.np
        order = np.argsort(positions, kind="stable")
        ordered = positions[order]
        index = np.arange(positions.size)
        is_first = np.ones(positions.shape, dtype=bool)
        is_first[1:] = ordered[1:] != ordered[:-1]
        starts = np.where(is_first, index, 0)
        turn = np.zeros(positions.shape, dtype=index.dtype)
        turn[order] = index - self._running(np.maximum, starts, 0)
        return turn

    def sigmoid(self, x: Array) -> Array:
        e = self.np.minimum(x, _LARGEST_EXPONENT[x.dtype.name])
        self.np.exp(e, e)
        return self.np.divide(e, e + 1.0, e)

    def sigmoid_gradient(self, x: Array, gradient: Array, out: Array = None) -> Array:
        """Behind the largest exponent it is exp(-x); where that is 0 there, so is the product."""
        np, cap = self.np, _LARGEST_EXPONENT[x.dtype.name]
        e = np.exp(np.minimum(x, cap))
        t = e + 1.0
        e /= t
        e /= t
        behind = x > cap
        slope = np.where(behind, np.exp(-np.maximum(x, cap)), e)
        lost = behind & (slope == 0.0) & np.isinf(gradient)
        gradient = np.where(lost, gradient.dtype.type(0), gradient)
        return np.multiply(gradient, slope, out)

    def sign(self, x: Array) -> Array:
        """As NumPy, nan for nan; CuPy's own gives 0."""
        return self.np.where(self.np.isnan(x), x, self.np.sign(x))

    def relu(self, x: Array) -> Array:
        return self.np.maximum(x, 0.0)

    def relu_gradient(self, x: Array, gradient: Array, out: Array = None) -> Array:
        chosen = self.np.where(x <= 0.0, gradient.dtype.type(0), gradient)
        if out is None:
            return chosen
        out[...] = chosen
        return out

    def erf(self, x: Array) -> Array:
        return self._erf(x).astype(x.dtype, copy=False)

    def _normal_share(self, x: Array) -> Array:
        """(1 + erf(x / sqrt(2))) / 2, by the complement: no digits cancel in the lower tail."""
        phi = self._erfc(x * -math.sqrt(0.5)).astype(x.dtype, copy=False)
        phi *= 0.5
        return phi

    def gelu(self, x: Array) -> Array:
        phi = self._normal_share(x)
        phi *= x
        return phi

    def gelu_gradient(self, x: Array, gradient: Array, out: Array = None) -> Array:
        phi = self._normal_share(x)
        near = self.np.clip(x, -DENSITY_END, DENSITY_END)
        phi += self.np.exp(near * near * -0.5) * near * (1.0 / math.sqrt(2.0 * math.pi))
        return self.np.multiply(gradient, phi, out)


_LARGEST_EXPONENT = {"float16": 11.0, "float32": 88.0, "float64": 709.0}
"""The largest whole number whose exponential is finite; sigmoid is 1 long before it."""

COMPOSED = tuple(name for name in vars(Composed) if not name.startswith("_"))
"""The functions that replace those of NumPy's namespace."""


def composed(np: Any, erf: Any, erfc: Any) -> dict[str, Any]:
    """The functions by name."""
    functions = Composed(np, erf, erfc)
    return {name: getattr(functions, name) for name in COMPOSED}
