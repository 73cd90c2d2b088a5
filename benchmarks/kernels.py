"""NumPy's kernels of several steps beside what they could cost, interleaved.

`scripts/bench engine kernels` prints it. Each call comes after a product of the same array, as in
a pass. The measure is NumPy's exponential of the array, one step of those that each of them takes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from ckptcli.backends import open_backend

Show = Callable[..., None]

SIZES = ((16, 1000), (64, 400), (256, 100), (1024, 9))
"""n of an n x n array, and how many rounds."""

KERNELS = {"sigmoid": 2.5, "sigmoid_gradient": 3.5, "relu_gradient": 2.0, "erf": 12.0}
KERNELS |= {"gelu": 14.0, "gelu_gradient": 16.0}
"""Kernel -> the most exponentials at n = 1024 that it may take."""


def kernels(show: Show) -> None:
    """Prints microseconds a call, by dtype, size and kernel, and the ratios of the largest."""
    names = ("exp", *KERNELS)
    for dtype in ("float32", "float64"):
        print(f"kernels, {dtype}: microseconds a call\n{'n':>8}", *(f"{n:>16}" for n in names))
        for n, rounds in SIZES:
            taken = _taken(names, dtype, n, rounds)
            print(f"{n:>8}", *(f"{taken[name] * 1e6:>16.1f}" for name in names))
        if dtype == "float32":
            for name, bound in KERNELS.items():
                show(f"{name} / exp, n = {n}", taken[name] / taken["exp"], bound)


def _taken(names: tuple[str, ...], dtype: str, n: int, rounds: int) -> dict[str, float]:
    """Median seconds of each."""
    namespace = open_backend("numpy").namespace
    rng = np.random.default_rng(0)
    x, gradient = (rng.normal(0.0, 1.0, (n, n)).astype(dtype) for _ in range(2))
    times: dict[str, list[float]] = {name: [] for name in names}
    for done in range(rounds + 1):
        for name in names[:: 1 if done % 2 else -1]:
            operands = (x, gradient) if name.endswith("gradient") else (x,)
            x @ gradient
            start = time.perf_counter()
            getattr(namespace, name)(*operands)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values[1:]) for name, values in times.items()}
