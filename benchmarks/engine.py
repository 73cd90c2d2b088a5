"""What the engine costs: ratios, each between two things measured in one interleaved run.

    scripts/bench engine [wide] [narrow] [replay] [chain] [nested] [leaves] [kernels] [watched]

wide    8 layers, n = 1024: `none` against its 23 matrix products alone, `balanced` against `none`.
narrow  64 layers, n = 16, one BLAS thread: against PyTorch eager and HIPS autograd.
chain   element-wise chains of 10,000 and 1,000,000 nodes: time a node; y = y * y 10,000 times.
nested  regions in regions: time a level, and an op that is computed again.
leaves  `ckpt check` on programs of many parameters.
kernels NumPy's kernels of several steps, by size, beside its exponential.
replay  a flat program against the same kernels by hand, and against the tape.
watched memory passes of silu networks of tiny layers, and `run`, `log`, `saved`, `check` on them.

OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE must be unset: a forced core type halves the BLAS's speed.
`--no-reuse` leaves the allocator alone, which shows what page faults cost.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
from kernels import kernels
from leaves import leaves
from nested import nested
from replay import replay
from threadpoolctl import threadpool_limits
from watched import watched

from ckptcli.autodiff.device import Device, device
from ckptcli.backends.allocator import reuse_freed_memory
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.workloads.silu import SiluWorkload

PARTS = ("wide", "narrow", "replay", "chain", "nested", "leaves", "kernels", "watched")

Pass = Callable[[], dict[str, float]]
"""Runs once; returns seconds by phase, `total` among them."""


def engine_device(strategy: str) -> Device:
    return device().autodiff().gradient_checkpointing(parse_strategy(strategy)).watched_by(None)


def engine_pass(workload: SiluWorkload, strategy: str) -> Pass:
    network = workload.load(engine_device(strategy))

    def run() -> dict[str, float]:
        start = time.perf_counter()
        result = network.forward()
        middle = time.perf_counter()
        gradients = result.root.backward()
        end = time.perf_counter()
        del gradients
        return {"forward": middle - start, "backward": end - middle, "total": end - start}

    return run


def matmul_pass(workload: SiluWorkload) -> Pass:
    """The products of one pass, into arrays that exist: what no engine can do without."""
    weights, x = workload.arrays
    out = np.empty_like(x)
    weight_out = np.empty_like(weights[0])

    def run() -> dict[str, float]:
        start = time.perf_counter()
        for weight in weights:
            np.dot(x, weight, out)
        for weight in weights:
            np.dot(x.T, x, weight_out) if x is weight else np.dot(weight.T, x, weight_out)
        for weight in weights[1:]:
            np.dot(x, weight.T, out)
        return {"total": time.perf_counter() - start}

    return run


def torch_pass(workload: SiluWorkload) -> Pass:
    import torch

    torch.set_num_threads(1)
    weights, x_array = workload.arrays
    parameters = [torch.from_numpy(weight.copy()).requires_grad_() for weight in weights]
    x = torch.from_numpy(x_array)

    def run() -> dict[str, float]:
        start = time.perf_counter()
        h = x
        for weight in parameters:
            m = h @ weight
            h = m * torch.sigmoid(m)
        loss = h.sum()
        gradients = torch.autograd.grad(loss, parameters)
        total = time.perf_counter() - start
        del gradients
        return {"total": total}

    return run


def autograd_pass(workload: SiluWorkload) -> Pass:
    import autograd.numpy as anp
    from autograd import grad

    weights, x = workload.arrays

    def loss(parameters: list[np.ndarray]) -> object:
        h = x
        for weight in parameters:
            m = anp.dot(h, weight)
            h = m * (1.0 / (1.0 + anp.exp(-m)))
        return anp.sum(h)

    gradient = grad(loss)

    def run() -> dict[str, float]:
        start = time.perf_counter()
        gradient(weights)
        return {"total": time.perf_counter() - start}

    return run


def chain_pass(length: int, strategy: str, op: str) -> Pass:
    target = engine_device(strategy)
    x = target.tensor(np.array([1.0]), "float64").require_grad()

    def run() -> dict[str, float]:
        start = time.perf_counter()
        y = x
        if op == "square":
            for _ in range(length):
                y = y * y
        else:
            for _ in range(length):
                y = y.sin()
        with np.errstate(over="ignore"):  # the gradient of y * y is 2 to the power of `length`
            y.backward()
        return {"total": (time.perf_counter() - start) / length}

    return run


def medians(passes: dict[str, Pass], rounds: int) -> dict[str, dict[str, float]]:
    """The median of each phase of each pass; one warm-up, order reversed every other round."""
    times: dict[str, dict[str, list[float]]] = {name: {} for name in passes}
    gc.collect()
    gc.disable()
    for done in range(rounds + 1):
        for name in list(passes)[:: 1 if done % 2 else -1]:
            for phase, seconds in passes[name]().items():
                if done:
                    times[name].setdefault(phase, []).append(seconds)
            if rounds < 100:
                gc.collect()
    gc.enable()
    return {
        name: {phase: statistics.median(values) for phase, values in phases.items()}
        for name, phases in times.items()
    }


def show(text: str, value: float, bound: float, aim: float | None = None) -> None:
    aimed = "" if aim is None else f", aim {aim}"
    verdict = "ok" if value <= bound else "ABOVE"
    print(f"  {text:<58} {value:6.3f}  (bound {bound}{aimed}) {verdict}")


def wide(rounds: int) -> None:
    workload = SiluWorkload(layers=8, n=1024)
    result = medians(
        {
            "matmul": matmul_pass(workload),
            "none": engine_pass(workload, "none"),
            "balanced": engine_pass(workload, "balanced"),
        },
        rounds,
    )
    none, balanced = result["none"], result["balanced"]
    print(f"wide: 8 layers, n = 1024, {rounds} rounds; none {none['total'] * 1e3:.1f} ms")
    show("none / the 23 products alone", none["total"] / result["matmul"]["total"], 1.18, 1.13)
    show("backward of balanced / of none", balanced["backward"] / none["backward"], 1.1, 1.05)


def narrow(rounds: int) -> None:
    workload = SiluWorkload(layers=64, n=16)
    nodes = 3 * 64 + 1
    with threadpool_limits(limits=1):
        passes = {
            "none": engine_pass(workload, "none"),
            "balanced": engine_pass(workload, "balanced"),
            "remat": engine_pass(workload, "remat"),
            "torch": torch_pass(workload),
            "autograd": autograd_pass(workload),
        }
        result = {name: phases["total"] for name, phases in medians(passes, rounds).items()}
    per_node = result["none"] / nodes * 1e6
    print(f"narrow: 64 layers, n = 16, {rounds} rounds; none {per_node:.2f} microseconds a node")
    show("none / PyTorch eager", result["none"] / result["torch"], 0.62, 0.55)
    show("none / HIPS autograd", result["none"] / result["autograd"], 0.14)
    show("balanced / none", result["balanced"] / result["none"], 1.5)
    show("balanced / PyTorch eager", result["balanced"] / result["torch"], 0.9)
    show("remat, a region a layer / none", result["remat"] / result["none"], 2.1, 1.7)


def chain(rounds: int) -> None:
    print(f"chain: element-wise chains, {rounds} rounds")
    for strategy in ("none", "balanced"):
        result = medians(
            {
                "short": chain_pass(10_000, strategy, "sin"),
                "long": chain_pass(1_000_000, strategy, "sin"),
            },
            rounds,
        )
        short, long = result["short"]["total"], result["long"]["total"]
        print(f"  {strategy}: {short * 1e6:.2f} and {long * 1e6:.2f} microseconds a node")
        show(f"{strategy}: a node of 1,000,000 / of 10,000", long / short, 1.3)
    squares = medians(
        {
            "short": chain_pass(1_000, "balanced", "square"),
            "long": chain_pass(10_000, "balanced", "square"),
        },
        rounds * 3,
    )
    ratio = squares["long"]["total"] / squares["short"]["total"]
    show("balanced, y = y * y: a node of 10,000 / of 1,000", ratio, 1.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--no-reuse", action="store_true")
    options = parser.parse_args()
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if name in os.environ:
            parser.error(f"unset {name}: it changes what the BLAS does")
    if not options.no_reuse:
        reuse_freed_memory()
    parts = options.parts or PARTS
    if "wide" in parts:
        wide(rounds=25)
    if "narrow" in parts:
        narrow(rounds=301)
    if "replay" in parts:
        replay(show)
    if "chain" in parts:
        chain(rounds=5)
    if "nested" in parts:
        nested(show)
    if "leaves" in parts:
        leaves(show)
    if "kernels" in parts:
        kernels(show)
    if "watched" in parts:
        watched(show)


if __name__ == "__main__":
    main()
