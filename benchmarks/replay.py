"""A flat program against the same kernels by hand and against the tape, interleaved."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from ckptcli.backends import open_backend
from ckptcli.backends.numpy_namespace import sigmoid, sigmoid_gradient
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.passes.run import open_pass
from ckptcli.replay.flat_program import flat_program
from ckptcli.workloads.silu import SiluWorkload

Show = Callable[..., None]


def by_hand(workload: SiluWorkload) -> Callable[[], object]:
    """The pass as somebody would write it: 64 layers, the gradient overwritten where nobody needs
    it.
    """
    weights, x = workload.arrays

    def run() -> object:
        values = []
        h = x
        for weight in weights:
            p = np.dot(h, weight)
            s = sigmoid(p)
            values.append((h, p, s))
            h = np.multiply(p, s)
        loss = np.sum(h).reshape(1)
        gradient = np.ones_like(h)
        gradients = [loss]
        for weight in reversed(weights):
            h, p, s = values.pop()
            of_p = np.multiply(gradient, s)
            of_s = np.multiply(gradient, p, gradient)
            of_s = sigmoid_gradient(p, of_s, of_s)
            of_p = np.add(of_s, of_p, of_p)
            gradients.append(np.dot(h.T, of_p))
            if values:  # the input needs no gradient
                gradient = np.dot(of_p, weight.T)
        return gradients

    return run


def replay(show: Show, rounds: int = 301) -> None:
    """Prints the ratios of 64 layers of n = 16."""
    workload, backend = SiluWorkload(layers=64, n=16), open_backend("numpy")
    backend.limit_threads(1)
    subjects: dict[str, Callable[[], object]] = {"by hand": by_hand(workload)}
    for name in ("none", "balanced"):
        tape = open_pass(workload, parse_strategy(name), backend)
        flat = flat_program(workload, parse_strategy(name), backend)
        subjects[f"{name} tape"] = lambda tape=tape: tape.backward(tape.forward())
        subjects[f"{name} flat"] = lambda flat=flat: flat.backward(flat.forward())
    times: dict[str, list[float]] = {name: [] for name in subjects}
    gc.collect()
    gc.disable()
    with threadpool_limits(limits=1):
        for done in range(rounds):
            for name in list(subjects)[:: 1 if done % 2 else -1]:
                start = time.perf_counter()
                subjects[name]()
                times[name].append(time.perf_counter() - start)
    gc.enable()
    median = {name: statistics.median(taken) for name, taken in times.items()}
    print(f"replay: 64 layers, n = 16, {rounds} rounds; by hand {median['by hand'] * 1e6:.0f} us")
    show("none replayed / by hand", median["none flat"] / median["by hand"], 1.1)
    show("none on the tape / by hand", median["none tape"] / median["by hand"], 2.1)
    show("balanced replayed / on the tape", median["balanced flat"] / median["balanced tape"], 0.7)
