"""ckpt, PyTorch eager and compiled JAX on the silu network, one after the other in every round.

    scripts/bench peers [8x64] [8x256] [8x1024] [8x2048] [64x16] [--rounds R]

A part is LAYERSxN. Each runs `none` and `remat` (a checkpoint a layer) in all three, and the matrix
products of `none` alone, which no library can do without; then each library again in a process of
its own, since idle threads of one slow another. Figures are medians; ratios are of medians
within the part. JAX's compilation is told apart. Bounds hold for 8x1024, and for 8x256 alone.

OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE must be unset: a forced core type halves the BLAS's speed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
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
LIBRARIES = ("ckpt", "torch", "jax")
AIMS = {
    ("ckpt none", "jax none"): 0.92,
    ("ckpt none", "torch none"): 0.6,
    ("ckpt remat", "torch remat"): 0.75,
}
AIMED_PART = "8x1024"
AIMED_ALONE = {"8x256": 0.9}
"""`none` over the best of the other libraries, each in a process of its own."""


def peer_pass(network: PeerNetwork) -> Pass:
    def run() -> dict[str, float]:
        start = time.perf_counter()
        result = network.backward(network.forward())
        end = time.perf_counter()
        del result
        return {"total": end - start}

    return run


def passes_of(name: str, libraries: list[str], engines: list[Engine]) -> dict[str, Pass]:
    """The products, and every strategy in every library; JAX compiles here."""
    layers, n = map(int, name.split("x"))
    workload = SiluWorkload(layers, n)
    passes: dict[str, Pass] = {"products": matmul_pass(workload)}
    for strategy in STRATEGIES:
        if "ckpt" in libraries:
            passes[f"ckpt {strategy}"] = engine_pass(workload, strategy)
        for engine in engines:
            regions = regions_of(parse_strategy(strategy), layers)
            start = time.perf_counter()
            network = engine.network(workload, regions)
            if engine.name == "jax" and "ckpt" in libraries:
                print(f"JAX compiled {strategy} of {name} in {time.perf_counter() - start:.2f} s")
            passes[f"{engine.name} {strategy}"] = peer_pass(network)
    return passes


def totals(passes: dict[str, Pass], rounds: int) -> dict[str, float]:
    gc.collect()
    gc.freeze()  # what the libraries made is not looked through between samples
    return {key: phases["total"] for key, phases in medians(passes, rounds).items()}


def alone(name: str, library: str, rounds: int) -> dict[str, float]:
    """The medians of one library in a process of its own."""
    command = [sys.executable, __file__, name, "--rounds", str(rounds), "--alone", library]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def part(name: str, engines: list[Engine], rounds: int) -> None:
    layers, n = map(int, name.split("x"))
    print(f"{name}: {layers} layers, n = {n}, {rounds} rounds")
    result = totals(passes_of(name, list(LIBRARIES), engines), rounds)
    for key, time_s in result.items():
        own = key.replace("torch", "ckpt").replace("jax", "ckpt")
        against = "" if own == key else f"  {own} / it {result[own] / time_s:5.2f}"
        share = time_s / result["products"]
        print(f"  {key:<12} {time_s * 1e3:9.3f} ms  {share:6.2f} of the products{against}")
    apart = {library: alone(name, library, rounds) for library in LIBRARIES}
    for library, own_result in apart.items():
        for strategy in STRATEGIES:
            time_s = own_result[f"{library} {strategy}"]
            share = time_s / own_result["products"]
            key = f"{library} {strategy} alone"
            print(f"  {key:<18} {time_s * 1e3:9.3f} ms  {share:6.2f} of the products")
    if name == AIMED_PART:
        for (first, second), aim in AIMS.items():
            show(f"{first} / {second}", result[first] / result[second], aim)
    if name in AIMED_ALONE:
        best = min(apart[library][f"{library} none"] for library in ("torch", "jax"))
        ratio = apart["ckpt"]["ckpt none"] / best
        show("ckpt none alone / the best of the others alone", ratio, AIMED_ALONE[name])


def heading(engines: list[Engine]) -> str:
    machine = read_machine()
    libraries = ", ".join(
        f"{engine.version}" + (f" ({engine.threads} threads)" if engine.threads else "")
        for engine in engines
    )
    return (
        f"{machine.cpu}, {machine.cores} cores; NumPy {machine.numpy}, {machine.blas} "
        f"({machine.blas_threads} threads); {libraries}; load {os.getloadavg()[0]:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--alone", choices=LIBRARIES, help="one part of one library, as JSON")
    options = parser.parse_args()
    for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if variable in os.environ:
            parser.error(f"unset {variable}: it changes what the BLAS does")
    reuse_freed_memory()
    libraries = [options.alone] if options.alone else list(LIBRARIES)
    engines = open_engines([library for library in libraries if library != "ckpt"])
    if options.alone:
        passes = passes_of(options.parts[0], libraries, engines)
        print(json.dumps(totals(passes, options.rounds)))
        return
    print(heading(engines))
    for name in options.parts or PARTS:
        part(name, engines, options.rounds or PARTS[name])


if __name__ == "__main__":
    main()
