"""Exact values of the 2D Ising model without a field: small tori and the infinite lattice.

The energy of a configuration is minus the sum of s_i s_j over all bonds; beta is the inverse
temperature. The torus of 2^steps spins is the one that the renormalisation group closes: square for
an even number of steps; for an odd one the square lattice turned by 45 degrees, a rectangle of
2L x L whose upper edge meets the lower one shifted by L.

Invariant: a value is exact but for rounding; the gradient is the derivative of the same sum, no
difference.

Source: H. A. Kramers and G. H. Wannier, Phys. Rev. 60, 252 (1941), for the transfer matrix;
L. Onsager, Phys. Rev. 65, 117 (1944), for the infinite lattice.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ckptcli.workloads.base import Exact

MOST_TORUS_STEPS = 6
"""8 x 8 spins: the transfer matrix of a row of 8 is 256 x 256."""

INFINITE_FROM_STEPS = 12
"""64 x 64 spins: away from the critical point no digit tells such a torus from an infinite one."""

_POINTS = 2**17
"""Of the integral; its integrand is periodic, so that the sum converges exponentially."""


def exact_values(beta: float, steps: int) -> Exact | None:
    """The value and the gradient for 2^steps spins; None where neither way leads."""
    if steps <= MOST_TORUS_STEPS:
        return torus(beta, steps)
    return infinite_lattice(beta) if steps >= INFINITE_FROM_STEPS else None


def torus(beta: float, steps: int) -> Exact:
    """The torus of 2^steps spins, from the trace of a product of transfer matrices.

    Z = Tr(V^height P): V[s, t] = exp(beta e[s, t]) leads from a row of `width` spins to the next,
    and P shifts a row where the torus is turned. V and P commute.
    """
    half = 2 ** (steps // 2)
    width, shift = (2 * half, half) if steps % 2 else (half, 0)
    rows = 1.0 - 2.0 * ((np.arange(2**width)[:, None] >> np.arange(width)) & 1)
    along = np.sum(rows * np.roll(rows, 1, axis=1), axis=1)
    bonds = rows @ rows.T + 0.5 * (along[:, None] + along[None, :])
    scale = float(bonds.max())
    transfer = np.exp(beta * (bonds - scale))
    shifted = np.roll(rows, shift, axis=1)
    order = np.sum((shifted < 0) << np.arange(width), axis=1)
    others = np.linalg.matrix_power(transfer, half - 1)[:, order]
    total = _trace_of_product(transfer, others)
    moved = _trace_of_product(transfer * bonds, others) / total
    return Exact((math.log(total) + half * beta * scale) / 2**steps, half * moved / 2**steps)


def _trace_of_product(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    return float(np.sum(left * right.T))


def infinite_lattice(beta: float) -> Exact:
    """Onsager's solution. At the critical point the gradient is that of either side.

    Near beta = 0 the gradient, about 2 beta there, is left with an error of about 1e-16 / beta.
    """
    cosh, sinh, tanh = math.cosh(2.0 * beta), math.sinh(2.0 * beta), math.tanh(2.0 * beta)
    modulus = 2.0 * sinh / cosh**2
    angles = np.linspace(0.0, math.pi / 2.0, _POINTS + 1)
    heights = np.log1p(np.sqrt(np.maximum(0.0, 1.0 - (modulus * np.sin(angles)) ** 2)))
    mean = float(np.sum(heights) - 0.5 * (heights[0] + heights[-1])) / _POINTS
    value = math.log(math.sqrt(2.0) * cosh) + 0.5 * mean
    complement = 2.0 * tanh * tanh - 1.0
    if complement == 0.0:
        return Exact(value, 1.0 / tanh)
    share = complement / _arithmetic_geometric_mean(1.0, abs(complement))
    return Exact(value, (1.0 + share) / tanh)


def _arithmetic_geometric_mean(first: float, second: float) -> float:
    """K(k) = pi / (2 agm(1, k')), with k' = sqrt(1 - k^2)."""
    while abs(first - second) > 1e-15 * first:
        first, second = 0.5 * (first + second), math.sqrt(first * second)
    return first
