"""What watching costs an op: memory passes, and the commands that print what they saw.

`scripts/bench engine watched` prints it. Subjects are silu networks of many tiny layers, three ops
each, so that next to nothing is computed. Figures are of an op of the forward pass, its backward
step and recomputations with it.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.profiling.timed_pass import TimedPass
from ckptcli.workloads.silu import SiluWorkload

OPS_A_LAYER = 3
STRATEGIES = ("none", "balanced")
MILLION = "1000000"


def silu(ops: int) -> SiluWorkload:
    workload = SiluWorkload(ops // OPS_A_LAYER, n=2, batch=2)
    assert workload.arrays, "drawn before anything is timed"
    return workload


def spent_s(work: Callable[[], object]) -> float:
    """The processor's time, which other processes disturb less than the clock's."""
    gc.collect()
    start_s = time.process_time()
    work()
    return time.process_time() - start_s


def pass_s(workload: SiluWorkload, strategy: str, rounds: int) -> tuple[float, float]:
    """The least time of a memory pass and of a pass that nobody watches."""
    chosen = parse_strategy(strategy)
    timed = TimedPass(workload, device(), chosen)
    watched_s, plain_s = [], []
    for _ in range(rounds):
        watched_s.append(spent_s(lambda: memory_pass(workload, device(), chosen)))
        plain_s.append(spent_s(lambda: timed.backward(timed.forward())))
    return min(watched_s), min(plain_s)


def command_s(*arguments: str) -> float:
    """The processor's time of a command in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "ckptcli", *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def command_us(name: str, ops: int, *options: str) -> float:
    """Microseconds an op of a command over both strategies, start and drawing left out."""

    def layers(count: int) -> tuple[str, ...]:
        return ("--layers", str(count), "--n", "2", "--batch", "2")

    least_s = command_s(name, *layers(1), *options)
    return (command_s(name, *layers(ops // OPS_A_LAYER), *options) - least_s) / ops * 1e6


def million() -> None:
    """One memory pass of a million ops under `none`, its time an op and the process's peak."""
    workload = silu(int(MILLION))
    watched_s = spent_s(lambda: memory_pass(workload, device(), parse_strategy("none")))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{watched_s / int(MILLION) * 1e6} {peak_bytes / 2**30}")


def watched(show: Callable[..., None]) -> None:
    """Print the part; `show(text, value, bound)` prints one figure against its bound."""
    short, long = 9_000, 90_000
    print("watched: tiny layers, microseconds an op and ratios, processor time")
    for strategy in STRATEGIES:
        (short_s, plain_s), (long_s, _) = (
            pass_s(silu(ops), strategy, rounds) for ops, rounds in ((short, 7), (long, 3))
        )
        each_us, plain_us = short_s / short * 1e6, plain_s / short * 1e6
        print(f"  {strategy}: {each_us:.1f} watched, {plain_us:.1f} by nobody")
        show(f"{strategy}: a watched pass / one that nobody watches", short_s / plain_s, 9.0)
        show(f"{strategy}: an op of 90,000 / of 9,000", long_s / long / (short_s / short), 1.3)
    few_us, many_us = (command_us("run", ops, "--reps", "1", "-q") for ops in (short, long))
    print(f"  ckpt run: {few_us:.0f} an op of {short} and {many_us:.0f} of {long}, over both")
    print("  strategies and their timed passes")
    for name, *options in (("log",), ("saved", "--json"), ("check",)):
        few_us, many_us = (command_us(name, ops, *options) for ops in (6_000, 30_000))
        print(f"  ckpt {name}: {few_us:.0f} an op of 6,000 and {many_us:.0f} of 30,000")
        show(f"ckpt {name}: an op of 30,000 / of 6,000", many_us / few_us, 1.3)
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__)], capture_output=True, text=True, check=True
    )
    each_us, peak_gib = map(float, done.stdout.split())
    print(f"  a million ops under none: {each_us:.1f} an op")
    show("a million ops under none: GiB of the process", peak_gib, 2.0)


if __name__ == "__main__":
    million()
