"""What tests of traced tensors share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ckptcli.traced import Tensor

STEP = 1e-5
"""Between the points of a difference."""

POINT = np.array([[0.7, -0.2, 0.4], [0.1, 1.5, -0.6], [0.3, 0.2, -1.1]])


def number(tensor: Tensor) -> float:
    return float(tensor.evaluate().item())


def checkpointed(tensor: Tensor) -> Tensor:
    tensor.checkpoint()
    return tensor


def slope(function: Callable[[float], float], at: float) -> float:
    """The fourth-order central difference."""
    near = function(at + STEP) - function(at - STEP)
    far = function(at + 2 * STEP) - function(at - 2 * STEP)
    return (8.0 * near - far) / (12.0 * STEP)
