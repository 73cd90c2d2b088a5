"""Exact values of the Ising model: recorded figures, and sums over all configurations."""

from __future__ import annotations

import math
from itertools import product

import pytest

from ckptcli.workloads.ising import exact_values, infinite_lattice, torus

# beta -> steps -> lnZ/N and its derivative.
TORI = {
    0.3: {
        1: (0.989991666356947, 1.667309214024310),
        2: (0.883259462072352, 1.277612005080206),
        3: (0.817582125075755, 1.023802944795145),
        4: (0.799095207857105, 0.844054073623857),
        5: (0.792026414104853, 0.744793433247367),
        6: (0.790770789034137, 0.712467372672069),
    },
    0.44: {5: (0.948575737510947, 1.521856948731799)},
    0.5: {5: (1.047407181551918, 1.749163159329991)},
}
INFINITE = {
    0.3: (0.790559070951263, 0.704499070832445),
    0.44: (0.928728540456888, 1.402226960031421),
    0.5: (1.025792812694918, 1.745564575312554),
}
CRITICAL = 0.5 * math.log1p(math.sqrt(2.0))


@pytest.mark.parametrize(("beta", "steps"), [(b, s) for b, values in TORI.items() for s in values])
def test_a_torus_has_its_recorded_figures(beta: float, steps: int) -> None:
    found = torus(beta, steps)
    assert (found.loss, found.gradient) == pytest.approx(TORI[beta][steps], abs=5e-15, rel=5e-15)


def neighbours(steps: int) -> list[tuple[int, int]]:
    """The bonds of a torus: right and up; an odd torus is shifted where its upper edge closes."""
    half = 2 ** (steps // 2)
    width, height, shift = (2 * half, half, half) if steps % 2 else (half, half, 0)
    bonds = []
    for x, y in product(range(width), range(height)):
        up = ((x + (shift if y + 1 == height else 0)) % width, (y + 1) % height)
        for x2, y2 in (((x + 1) % width, y), up):
            bonds.append((y * width + x, y2 * width + x2))
    return bonds


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_torus_is_the_sum_over_all_its_configurations(steps: int) -> None:
    beta, bonds, spins = 0.37, neighbours(steps), 2**steps
    total = moved = 0.0
    for spin in product((-1, 1), repeat=spins):
        energy = sum(spin[i] * spin[j] for i, j in bonds)
        total += math.exp(beta * energy)
        moved += energy * math.exp(beta * energy)
    found = torus(beta, steps)
    expected = (math.log(total) / spins, moved / total / spins)
    assert (found.loss, found.gradient) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("beta", INFINITE)
def test_the_infinite_lattice_has_its_recorded_figures(beta: float) -> None:
    found = infinite_lattice(beta)
    assert (found.loss, found.gradient) == pytest.approx(INFINITE[beta], abs=3e-15, rel=3e-15)


@pytest.mark.parametrize("beta", [0.1, 0.3, 0.43, 0.45, 1.0])
def test_the_gradient_of_the_infinite_lattice_is_the_difference_of_its_value(beta: float) -> None:
    h = 1e-4
    values = [infinite_lattice(beta + k * h).loss for k in (-2, -1, 1, 2)]
    difference = (8.0 * (values[2] - values[1]) - (values[3] - values[0])) / (12.0 * h)
    assert infinite_lattice(beta).gradient == pytest.approx(difference, rel=1e-8)


def test_at_the_critical_point_the_gradient_is_the_square_root_of_two() -> None:
    assert infinite_lattice(CRITICAL).gradient == pytest.approx(math.sqrt(2.0), rel=1e-12)


def test_large_tori_are_infinite_and_those_between_are_not_known() -> None:
    assert exact_values(0.3, 12) == infinite_lattice(0.3)
    assert exact_values(0.3, 6) == torus(0.3, 6)
    assert [exact_values(0.3, steps) for steps in range(7, 12)] == [None] * 5
