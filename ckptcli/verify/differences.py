"""The gradient against finite differences, in a random direction, in float64.

The fourth-order central difference (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h is taken at two
steps. How far both lie apart says how well the difference can be trusted; where that is too far it
is called unusable, and nothing is concluded from it.

Source: B. Fornberg, "Generation of finite difference formulas" (1988); HIPS autograd's test_util
for the random direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.passes.run import open_pass, run_pass
from ckptcli.workloads.base import Workload

STEP = 1e-3
"""Of the parameters' root mean square; truncation and rounding are then about equal."""

UNUSABLE = 1e-3
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class DirectionalDifference:
    """One direction: the gradient's derivative, the difference's, and the scatter of two steps."""

    gradient: float
    difference: float
    scatter: float

    @property
    def relative_error(self) -> float:
        """Of the gradient's derivative, relative to the larger of both."""
        scale = max(abs(self.gradient), abs(self.difference))
        return abs(self.gradient - self.difference) / scale if scale else 0.0

    @property
    def is_usable(self) -> bool:
        """Whether the two steps agree well enough to conclude anything."""
        return self.scatter <= UNUSABLE

    @property
    def agrees(self) -> bool:
        """Whether gradient and difference agree as far as the difference can tell."""
        return self.relative_error <= max(TOLERANCE, 10.0 * self.scatter)


def directional_differences(
    workload: Workload,
    strategy: Strategy,
    directions: int = 3,
    seed: int = 0,
    backend: Backend | None = None,
) -> list[DirectionalDifference]:
    """The gradient of a float64 workload under `strategy` against differences of its loss.

    Of a program with one number there is one direction.
    """
    backend = backend or open_backend()
    rng = np.random.Generator(np.random.PCG64(seed))
    parameters = workload.parameters()
    gradients = run_pass(workload, strategy, backend).gradient_arrays()
    results = []
    is_scalar = sum(array.size for array in parameters.values()) == 1
    for _ in range(1 if is_scalar else directions):
        direction = {
            name: np.ones(array.shape) if is_scalar else rng.normal(size=array.shape)
            for name, array in parameters.items()
        }
        derivative = sum(
            float(np.sum(gradients[name] * direction[name]))
            for name in parameters
            if name in gradients
        )
        scale = np.sqrt(np.mean([np.mean(array**2) for array in parameters.values()])) or 1.0
        found = _difference_and_scatter(workload, backend, direction, float(scale))
        results.append(DirectionalDifference(derivative, *found))
    return results


@dataclass(frozen=True, slots=True)
class ScalarDifference:
    """The derivative of a loss by its one number, and the scatter of two steps."""

    difference: float
    scatter: float

    @property
    def is_usable(self) -> bool:
        """Whether the two steps agree well enough to conclude anything."""
        return self.scatter <= UNUSABLE


def scalar_difference(workload: Workload, backend: Backend) -> ScalarDifference:
    """The finite difference of a float64 workload with one parameter of one element."""
    ((name, value),) = workload.parameters().items()
    direction = {name: np.ones_like(value)}
    scale = abs(value.item())
    return ScalarDifference(*_difference_and_scatter(workload, backend, direction, scale or 1.0))


def _difference_and_scatter(
    workload: Workload, backend: Backend, direction: dict[str, NDArray[Any]], scale: float
) -> tuple[float, float]:
    """The difference at the finer of two steps, and how far both lie apart."""
    coarse = _difference(workload, backend, direction, STEP * scale)
    fine = _difference(workload, backend, direction, STEP * scale / 2.0)
    return fine, abs(coarse - fine) / max(abs(fine), abs(coarse), 1e-300)


def _difference(
    workload: Workload, backend: Backend, direction: dict[str, NDArray[Any]], step: float
) -> float:
    def loss(distance: float) -> float:
        moved = {name: a + distance * direction[name] for name, a in workload.parameters().items()}
        return open_pass(workload.with_parameters(moved), NoCheckpointing(), backend).forward().loss

    near = loss(step) - loss(-step)
    far = loss(2.0 * step) - loss(-2.0 * step)
    return (8.0 * near - far) / (12.0 * step)
