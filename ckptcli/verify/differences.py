"""The gradient against finite differences, in random directions, in float64.

Along a direction the loss is taken at seven places, 0, h/2, h and 2h to either side. They give the
fourth-order central difference (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h at h and at h/2, and a
third-order difference to each side alone. How far the four lie apart says how well the difference
can be trusted. Where that is too far, or where the program takes another branch at one of the
places, h is made smaller; where no h helps, the direction is called unusable, with the reason, and
nothing is concluded from it.

Invariant: at a kink, whether it is hit exactly or stepped over, a direction is unusable: both
central differences may agree there, on the mean of two derivatives.

Source: B. Fornberg, "Generation of finite difference formulas" (1988); HIPS autograd's test_util
for the random direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.measure.difference import DirectionalDifference
from ckptcli.passes.run import open_pass, run_pass
from ckptcli.verify.branches import branches
from ckptcli.verify.rounding import rounding_of
from ckptcli.workloads.base import Workload

Direction: TypeAlias = Mapping[str, NDArray[Any]]

LossAt: TypeAlias = Callable[[Mapping[str, NDArray[Any]]], tuple[float, bytes]]
"""From the parameters to the loss, and to what tells one branch of the program from another."""

STEPS = (1e-3, 1e-4, 1e-5)
"""Relative to what is moved. At the first, truncation and rounding are about equal for a smooth
loss; the smaller ones stay on this side of a kink that is near.
"""

PLACES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
SIDE = ((0.5, 16.0 / 3.0), (1.0, -2.0), (2.0, 1.0 / 6.0), (0.0, -3.5))
"""Places to one side and their weights in a third-order difference."""

UNUSABLE = 1e-6
"""Of a scatter. A gradient that is 1e-4 off is then always told from one that is right."""

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Of a loss, in units of it: what a difference of two cannot tell."""

DRAWN_SHARE = 4.0
"""How many times what was drawn of rounding there may be."""

DROWNED = "it changes the loss by less than rounding can tell"

LEAST = 1e-290
"""Derivatives below are near the subnormal numbers, and have few digits."""

FEWEST_DIRECTIONS, MOST_DIRECTIONS = 3, 8


@dataclass(frozen=True, slots=True)
class Difference:
    """The derivative along a line by finite differences, and how far they lie apart."""

    derivative: float
    scatter: float
    reason: str | None = None
    """Why nothing can be concluded from it; None where something can."""


def directional_differences(
    workload: Workload,
    strategy: Strategy,
    seed: int = 0,
    backend: Backend | None = None,
) -> list[DirectionalDifference]:
    """The gradient of a float64 workload under `strategy` against differences of its loss."""
    backend = backend or open_backend()
    gradients = run_pass(workload, strategy, backend).gradient_arrays()
    loss_at, rounding = _loss_of(workload, backend), _rounding_of(workload)
    return differences_of(workload.parameters(), gradients, loss_at, seed, rounding)


def _loss_of(workload: Workload, backend: Backend) -> LossAt:
    return lambda parameters: _loss(workload.with_parameters(parameters), backend)


def _loss(workload: Workload, backend: Backend) -> tuple[float, bytes]:
    result = open_pass(workload, NoCheckpointing(), backend).forward()
    return result.loss, branches(result.root, backend)


def _rounding_of(workload: Workload) -> float:
    """How far rounding moves the loss of the program, which NumPy tells for every library."""
    return rounding_of(lambda backend: _loss(workload, backend))


def differences_of(
    parameters: Mapping[str, NDArray[Any]],
    gradients: Mapping[str, NDArray[Any]],
    loss_at: LossAt,
    seed: int = 0,
    rounding: float = 0.0,
) -> list[DirectionalDifference]:
    """The gradients of a float64 program, by parameter, against differences of its loss.

    `rounding` is how far rounding alone moves the loss, where that is known.

    Each direction moves one parameter, or of many parameters one in eight, so that a fault in the
    gradient of a small one is not lost in that of a large one. Of a program with one number there
    is one direction.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    is_number = sum(array.size for array in parameters.values()) == 1
    results = []
    for names in _groups(parameters):
        direction = {
            n: np.ones_like(parameters[n]) if is_number else _random_direction(rng, parameters[n])
            for n in names
        }
        derivative = sum(
            float(np.sum(gradients[name] * moved, where=moved != 0.0))
            for name, moved in direction.items()
            if name in gradients
        )
        scale = _size_of(parameters[names[0]]) if is_number else 1.0
        found = _Line(parameters, direction, loss_at, rounding).difference(scale, derivative)
        results.append(
            DirectionalDifference(
                derivative, found.derivative, found.scatter, tuple(names), found.reason
            )
        )
    return results


def scalar_difference(workload: Workload, backend: Backend) -> Difference:
    """The finite difference of a float64 workload with one parameter of one element."""
    parameters = workload.parameters()
    ((name, value),) = parameters.items()
    direction = {name: np.ones_like(value)}
    line = _Line(parameters, direction, _loss_of(workload, backend), _rounding_of(workload))
    return line.difference(_size_of(value), None)


def _size_of(number: NDArray[Any]) -> float:
    """What steps of a program with one number are relative to."""
    return abs(number.item()) or 1.0


def _groups(parameters: Mapping[str, NDArray[Any]]) -> list[Sequence[str]]:
    """Which parameters each direction moves."""
    names = list(parameters)
    if sum(array.size for array in parameters.values()) == 1:
        return [[name] for name in names if parameters[name].size]
    groups = [names[first::MOST_DIRECTIONS] for first in range(min(len(names), MOST_DIRECTIONS))]
    repeats = -(-FEWEST_DIRECTIONS // max(1, len(groups)))
    return [group for _ in range(repeats) for group in groups]


def _random_direction(rng: np.random.Generator, array: NDArray[Any]) -> NDArray[Any]:
    """Normal, each element in proportion to its own size, or to a tenth of what is usual.

    So no element is moved past all that happens near it because others are larger.
    """
    sizes = np.where(np.isfinite(array), np.abs(array), 0.0)
    usual = float(np.median(sizes[sizes > 0.0])) if sizes.any() else 1.0
    scales = np.where(np.isfinite(array), np.maximum(sizes, max(usual / 10.0, LEAST)), 0.0)
    moved: NDArray[Any] = rng.normal(size=array.shape) * scales
    return moved


class _Line:
    """The loss of a program along a direction from its own parameters."""

    def __init__(
        self,
        parameters: Mapping[str, NDArray[Any]],
        direction: Direction,
        loss_at: LossAt,
        rounding: float,
    ) -> None:
        self._parameters = parameters
        self._direction = direction
        self._loss_at = loss_at
        self._rounding = rounding
        self._here = self._at(0.0)

    def difference(self, scale: float, gradient: float | None) -> Difference:
        """At the largest step that can be used, of those times `scale`; else at the smallest.

        A gradient that is given says how small a difference is that counts as zero.
        """
        beside = abs(gradient) if gradient is not None and math.isfinite(gradient) else 0.0
        for found in self._differences(scale, beside):
            if found.reason is None:
                break
        return found

    def _differences(self, scale: float, beside: float) -> Iterator[Difference]:
        for step in STEPS:
            h = step * scale
            passes = {p: self._here if p == 0.0 else self._at(p * h) for p in PLACES}
            losses = {place: loss for place, (loss, _) in passes.items()}
            found = _of_losses(losses, h, beside, self._rounding)
            if len({branch for _, branch in passes.values()}) > 1:
                found = Difference(found.derivative, found.scatter, "a branch changes along it")
            yield found

    def _at(self, distance: float) -> tuple[float, bytes]:
        """The loss there, and the branches of the program."""
        moved = {n: self._parameters[n] + distance * by for n, by in self._direction.items()}
        return self._loss_at({**self._parameters, **moved})


def _of_losses(f: Mapping[float, float], h: float, beside: float, rounding: float) -> Difference:
    """The differences of losses at `PLACES` times h, judged."""
    coarse = (8.0 * (f[1.0] - f[-1.0]) - (f[2.0] - f[-2.0])) / (12.0 * h)
    fine = (8.0 * (f[0.5] - f[-0.5]) - (f[1.0] - f[-1.0])) / (6.0 * h)
    right = sum(weight * f[place] for place, weight in SIDE) / h
    left = -sum(weight * f[-place] for place, weight in SIDE) / h
    estimates = (coarse, fine, left, right)
    if not all(map(math.isfinite, estimates)):
        return Difference(fine, math.nan, "the loss is not finite along it")
    own = ROUNDING * max(map(abs, f.values())) / h
    noise = max(own, DRAWN_SHARE * rounding / h)
    if max(map(abs, estimates)) <= own:  # as at a stationary point: 0, as far as can be told
        scatter = noise / beside if beside else 0.0
        return Difference(0.0, scatter, DROWNED if scatter > UNUSABLE else None)
    scale = max(map(abs, estimates))
    sides, drowned = abs(right - left) / scale, noise / scale
    scatter = max(abs(coarse - fine) / scale, sides, drowned)
    return Difference(fine, scatter, _reason(scale, scatter, sides, drowned))


def _reason(scale: float, scatter: float, sides: float, rounding: float) -> str | None:
    if scale < LEAST:
        return "the derivative is too close to the subnormal numbers"
    if scatter <= UNUSABLE:
        return None
    if rounding > UNUSABLE:
        return DROWNED
    if sides == scatter:
        return "the derivatives to its left and right differ"
    return "the two steps differ too much"
