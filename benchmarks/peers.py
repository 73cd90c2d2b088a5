"""ckpt, PyTorch eager and compiled JAX on the silu network, one after the other in every round.

    scripts/bench peers [8x64] [8x256] [8x1024] [8x2048] [64x16] [--rounds R]

A part is LAYERSxN. Each runs `none` and `remat` (a checkpoint a layer) in all three, and the matrix
products of `none` alone, which no library can do without. Figures are medians; ratios are of
medians within the part. JAX's compilation is told apart. Bounds hold for 8x1024.

OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE must be unset: a forced core type halves the BLAS's speed.
"""

from __future__ import annotations

import argparse
import gc
import os
import time

from engine import Pass, engine_pass, matmul_pass, medians, show

from ckptcli.backends.allocator import reuse_freed_memory
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.measure.machine import read_machine
from ckptcli.peers.base import Engine, PeerNetwork, open_engines, regions_of
from ckptcli.workloads.silu import SiluWorkload

PARTS = {"8x64": 301, "8x256": 101, "8x1024": 25, "8x2048": 9, "64x16": 301}
"""Layers and width -> rounds."""

STRATEGIES = ("none", "remat")
AIMS = {
    ("ckpt none", "jax none"): 0.95,
    ("ckpt none", "torch none"): 0.6,
    ("ckpt remat", "torch remat"): 0.75,
}
AIMED_PART = "8x1024"


def peer_pass(network: PeerNetwork) -> Pass:
    def run() -> dict[str, float]:
        start = time.perf_counter()
        result = network.backward(network.forward())
        end = time.perf_counter()
        del result
        return {"total": end - start}

    return run


def part(name: str, engines: list[Engine], rounds: int) -> None:
    layers, n = map(int, name.split("x"))
    workload = SiluWorkload(layers, n)
    passes: dict[str, Pass] = {"products": matmul_pass(workload)}
    compiled_s = {}
    for strategy in STRATEGIES:
        passes[f"ckpt {strategy}"] = engine_pass(workload, strategy)
        for engine in engines:
            regions = regions_of(parse_strategy(strategy), layers)
            start = time.perf_counter()
            network = engine.network(workload, regions)
            if engine.name == "jax":
                compiled_s[strategy] = time.perf_counter() - start
            passes[f"{engine.name} {strategy}"] = peer_pass(network)
    gc.collect()
    gc.freeze()  # what the libraries made is not looked through between samples
    result = {key: phases["total"] for key, phases in medians(passes, rounds).items()}
    compiled = ", ".join(f"{s} {time_s:.2f} s" for s, time_s in compiled_s.items())
    print(f"{name}: {layers} layers, n = {n}, {rounds} rounds; JAX compiled {compiled}")
    for key, time_s in result.items():
        own = key.replace("torch", "ckpt").replace("jax", "ckpt")
        against = "" if own == key else f"  {own} / it {result[own] / time_s:5.2f}"
        share = time_s / result["products"]
        print(f"  {key:<12} {time_s * 1e3:9.3f} ms  {share:6.2f} of the products{against}")
    if name == AIMED_PART:
        for (first, second), aim in AIMS.items():
            show(f"{first} / {second}", result[first] / result[second], aim)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if variable in os.environ:
            parser.error(f"unset {variable}: it changes what the BLAS does")
    reuse_freed_memory()
    engines = open_engines(["torch", "jax"])
    machine = read_machine()
    libraries = ", ".join(
        f"{engine.version}" + (f" ({engine.threads} threads)" if engine.threads else "")
        for engine in engines
    )
    print(
        f"{machine.cpu}, {machine.cores} cores; NumPy {machine.numpy}, {machine.blas} "
        f"({machine.blas_threads} threads); {libraries}; load {os.getloadavg()[0]:.1f}"
    )
    for name in options.parts or PARTS:
        part(name, engines, options.rounds or PARTS[name])


if __name__ == "__main__":
    main()
