"""How far rounding alone moves a loss: the program with every result moved within its last place.

A difference of two losses tells nothing below that, however exact both look: (x + 1e20) - 1e20 is
flat wherever float64 is, and its derivative is 1.

Invariant: what is moved is a fresh array, never one that was given.

Source: D. S. Parker, "Monte Carlo Arithmetic" (1997).
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from ckptcli.backends import numpy_namespace
from ckptcli.backends.base import Backend, Namespace
from ckptcli.backends.numpy_backend import NumpyBackend

DRAWS = 3
LAST_PLACE = float(np.finfo(np.float64).eps)

LossOn = Callable[[Backend], tuple[float, bytes]]
"""From a library to the loss, and to what tells one branch of the program from another."""


def rounding_of(loss_on: LossOn, seed: int = 0) -> float:
    """The most that a loss moves, absolute; 0 where every draw takes another branch."""
    rng = np.random.Generator(np.random.PCG64(seed))
    loss, branch = loss_on(NumpyBackend())
    found = [loss_on(NumpyBackend(_moving(rng))) for _ in range(DRAWS)]
    moved = (abs(other - loss) for other, way in found if way == branch)
    return max((each for each in moved if np.isfinite(each)), default=0.0)


def _moving(rng: np.random.Generator) -> Namespace:
    """NumPy's namespace, whose functions move what they made."""
    names = {
        name: _moved(value, rng) if callable(value) and not isinstance(value, type) else value
        for name, value in vars(numpy_namespace).items()
        if not name.startswith("_")
    }
    return cast(Namespace, SimpleNamespace(**names))


def _moved(function: Callable[..., Any], rng: np.random.Generator) -> Callable[..., Any]:
    def moved(*arguments: Any, **more: Any) -> Any:
        result = function(*arguments, **more)
        if not isinstance(result, np.ndarray) or result.dtype != np.float64:
            return result
        given = (*arguments, *more.values())
        if any(isinstance(a, np.ndarray) and np.may_share_memory(a, result) for a in given):
            return result
        return result * (1.0 + LAST_PLACE * rng.uniform(-1.0, 1.0, result.shape))

    return moved
