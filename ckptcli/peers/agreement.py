"""How far loss and gradients of a peer are from ckpt's own.

Libraries sum in different orders, so that bits differ; what is compared is the size of the
difference. A gradient's elements are measured against its largest one: near zero an element has
lost its digits to cancellation in every library alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ckptcli.measure import OURS
from ckptcli.measure.check import WrongGradient
from ckptcli.measure.row import Agreement
from ckptcli.peers.base import Values
from ckptcli.verify.bits import farthest_difference, first_difference

TOLERANCES = {"float32": 1e-5, "float64": 1e-12}


def agreement(
    expected: Values, found: Values, dtype: str, tolerance: float, beside: str = OURS
) -> Agreement:
    """`found` beside `expected`, both of `dtype`; `beside` says whose that is."""
    loss_relative, loss_ulp = distance(
        np.asarray(expected.loss, dtype), np.asarray(found.loss, dtype)
    )
    gradients = [distance(own, other) for own, other in zip(expected.gradients, found.gradients)]
    return Agreement(
        loss=found.loss,
        loss_relative=loss_relative,
        loss_ulp=loss_ulp,
        gradient_relative=_largest(relative for relative, _ in gradients),
        gradient_ulp=_largest(ulp for _, ulp in gradients),
        tolerance=tolerance,
        beside=beside,
    )


def share_apart(expected: Values, found: Values) -> float:
    """The largest difference of loss or of a gradient, as a share of its largest element."""
    pairs = [(np.asarray(expected.loss), np.asarray(found.loss))]
    pairs += zip(expected.gradients, found.gradients)
    return _largest(distance(own, other)[0] for own, other in pairs)


def distance(expected: Any, found: Any) -> tuple[float, float]:
    """The largest difference between two arrays of one shape and dtype: as a share of the largest
    element of `expected`, and in spacings of the dtype there. Infinite where one is not finite and
    they are not the same.
    """
    if np.array_equal(expected, found, equal_nan=True):
        return 0.0, 0.0
    if expected.shape != found.shape:
        return float("inf"), float("inf")
    largest = np.max(np.abs(expected))
    apart = float(np.max(np.abs(expected.astype(np.float64) - found.astype(np.float64))))
    if not (np.isfinite(largest) and np.isfinite(apart)):
        return float("inf"), float("inf")
    return apart / float(largest) if largest else float("inf"), apart / float(np.spacing(largest))


def wrong_gradient(parameter: str, expected: Any, found: Any, block: str = "") -> WrongGradient:
    """A gradient that differs, with the first element and the one that moved most."""
    worst = farthest_difference(expected, found)
    first = first_difference(expected, found) or worst
    return WrongGradient(parameter, first, worst, distance(expected, found)[0], block)


def _largest(figures: Any) -> float:
    return max(figures, default=0.0)
