"""The TRG, 20 steps at chi 16: value, gradient with residuals, gradient with replay; ours beside
the same program in JAX (jitted, compile time apart) and in HIPS autograd, in interleaved rounds.

    scripts/bench trg [--steps 20] [--chi 16] [--beta 0.3] [--rounds 9]

Every program is float64, with the broadened rule for the SVD's gradient (docs/seed-experiments.md
has the figures). JAX's replay is `jax.checkpoint` around each step; its gradient is wrong from five
steps on, see docs/when-checkpointing-changes-the-gradient.md, which changes nothing of its time.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from engine import show

from ckptcli.autodiff.device import device
from ckptcli.backends.allocator import reuse_freed_memory
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.peers.base import program_of, regions_of
from ckptcli.peers.trg_formula import trg_steps, trg_value
from ckptcli.workloads.trg import TrgWorkload
from ckptcli.workloads.trg_tensors import kept_ranks

EPS = 1e-12
Program = Callable[[float], Sequence[float]]
"""From beta to what it gives: the value, or the value and its gradient."""


def jax_programs(steps: int, chi: int) -> dict[str, Program]:
    """The value, and both gradients, compiled."""
    import jax

    jax.config.update("jax_enable_x64", True)

    def program(strategy: str) -> Any:
        regions = regions_of(parse_strategy(strategy), steps)
        return program_of("jax", TrgWorkload(steps, chi, svd_eps=EPS), regions).loss

    compiled = {
        "jax value": jax.jit(program("none")),
        "jax residuals": jax.jit(jax.value_and_grad(program("none"))),
        "jax replay": jax.jit(jax.value_and_grad(program("remat"))),
    }

    def ready(call: Any) -> Program:
        def run(beta: float) -> Sequence[float]:
            found = jax.block_until_ready(call([np.array([beta])], None))
            return [float(np.sum(array)) for array in jax.tree.leaves(found)]

        return run

    return {name: ready(call) for name, call in compiled.items()}


def autograd_programs(steps: int, chi: int) -> dict[str, Program]:
    """The value and the gradient with residuals, which is all that it has."""
    import autograd.numpy as anp
    from autograd import value_and_grad
    from autograd.extend import defvjp, primitive

    def packed(matrix: Any) -> Any:
        u, s, vt = np.linalg.svd(matrix)
        return np.concatenate([u, s[None, :], vt])

    def packed_gradient(ans: Any, matrix: Any) -> Any:
        n = len(matrix)
        u, s, vt = ans[:n], ans[n], ans[n + 1 :]
        below, above = s[None, :] - s[:, None], s[None, :] + s[:, None]
        with np.errstate(all="ignore"):
            f, g = below / (below**2 + EPS**2), above / (above**2 + EPS**2)
        np.fill_diagonal(g, 0.0)

        def pulled_back(gradient: Any) -> Any:
            j, k = u.T @ gradient[:n], vt @ gradient[n + 1 :].T
            middle = ((f + g) * (j - j.T) + (f - g) * (k - k.T)) / 2 + np.diag(gradient[n])
            return u @ middle @ vt

        return pulled_back

    packed_svd = primitive(packed)
    defvjp(packed_svd, packed_gradient)

    def svd(matrix: Any) -> Any:
        n = len(matrix)
        factors = packed_svd(matrix)
        return factors[:n], factors[n], factors[n + 1 :].T

    kept = kept_ranks(steps, chi)

    def value(beta: Any) -> Any:
        return trg_value(anp, beta, [lambda tensor: trg_steps(anp, svd, tensor, kept)])

    both = value_and_grad(value)
    return {
        "autograd value": lambda beta: (float(value(beta)),),
        "autograd residuals": lambda beta: tuple(map(float, both(beta))),
    }


def engine_programs(steps: int, chi: int) -> dict[str, Program]:
    """The value, the gradient under `none` and under `remat`."""
    return {
        "ckpt value": engine_value(steps, chi),
        "ckpt residuals": engine_gradient(steps, chi, "none"),
        "ckpt replay": engine_gradient(steps, chi, "remat"),
    }


def engine_value(steps: int, chi: int) -> Program:
    def run(beta: float) -> Sequence[float]:
        target = device().autodiff().watched_by(None)
        return (TrgWorkload(steps, chi, beta).load(target).forward().root.item(),)

    return run


def engine_gradient(steps: int, chi: int, strategy: str) -> Program:
    chosen = parse_strategy(strategy)

    def run(beta: float) -> Sequence[float]:
        target = device().autodiff().gradient_checkpointing(chosen).watched_by(None)
        result = TrgWorkload(steps, chi, beta).load(target).forward()
        gradient = result.root.backward().wrt(result.parameters["beta"])
        assert gradient is not None
        return result.root.item(), gradient.item()

    return run


def measured(programs: dict[str, Program], beta: float, rounds: int) -> dict[str, list[float]]:
    """Seconds of each program's calls, the first (compiling, warm-up) apart at index 0."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    gc.collect()
    gc.disable()
    for done in range(rounds + 1):
        for name in list(programs)[:: 1 if done % 2 else -1]:
            start = time.perf_counter()
            programs[name](beta)
            times[name].append(time.perf_counter() - start)
            gc.collect()
    gc.enable()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--chi", type=int, default=16)
    parser.add_argument("--beta", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if name in os.environ:
            parser.error(f"unset {name}: it changes what the BLAS does")
    reuse_freed_memory()
    size = options.steps, options.chi
    programs = {**engine_programs(*size), **jax_programs(*size), **autograd_programs(*size)}
    times = measured(programs, options.beta, options.rounds)
    steady = {name: statistics.median(seconds[1:]) for name, seconds in times.items()}
    print(f"trg: {size[0]} steps, chi = {size[1]}, beta = {options.beta}, {options.rounds} rounds")
    print("  program              first call     steady   gives")
    for name, program in programs.items():
        found = "  ".join(f"{number:.15f}" for number in program(options.beta))
        print(f"  {name:<20} {times[name][0]:9.3f} s {steady[name]:8.4f} s   {found}")
    show("value: ours / JAX", steady["ckpt value"] / steady["jax value"], 0.95)
    show("residuals: ours / JAX", steady["ckpt residuals"] / steady["jax residuals"], 0.9, 0.75)
    show("replay: ours / JAX", steady["ckpt replay"] / steady["jax replay"], 0.7)
    show("ours: replay / residuals", steady["ckpt replay"] / steady["ckpt residuals"], 1.6)
    autograd = steady["ckpt residuals"] / steady["autograd residuals"]
    show("residuals: ours / HIPS autograd", autograd, 1.0)


if __name__ == "__main__":
    main()
