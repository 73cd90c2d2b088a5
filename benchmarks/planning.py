"""What planning costs as problems grow, each plan played; `scripts/bench planning` prints it.

A bound is on processor time: 2 s for a silu network of 1,000 nodes, 10 s for chains of 100,000.
With the word `programs` it prints instead what recording, timing and simulating a program cost as
it grows. With the word `silu` it prints how the plans of the silu network of 8 layers compare with
every recorded optimum, those too whose results are written over operands, which no dag says.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from ckptcli.backends import open_backend
from ckptcli.measure.rounds import collector_off
from ckptcli.planning.making import make_plan
from ckptcli.planning.plan import Plan
from ckptcli.planning.planners.base import Request
from ckptcli.planning.problems.base import Problem
from ckptcli.planning.problems.steps import StepsProblem
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Simulator
from ckptcli.simulation.timing import timed
from ckptcli.workloads.silu import SiluWorkload
from tests.planning_kit import PRODUCT, problem, recorded, silu

LAYERS = (250, 1_000, 4_000, 16_000)

Case = tuple[str, Callable[[], Problem], int, float | None]
"""What it is; the problem; the budget; the most seconds that it may take."""


def main() -> int:
    """Prints what the words ask for; 1 if something took longer than it may."""
    if sys.argv[1:] == ["silu"]:
        variants()
        return 0
    if sys.argv[1:] == ["programs"]:
        programs()
        return 0
    return growth()


def programs() -> None:
    """Prints a line a network: seconds of each part of `ckpt plan`, and in all for each layer."""
    backend = open_backend("numpy")
    print(f"{'silu, n = 4':16} {'record':>8} {'time':>8} {'named':>8}  a layer")
    for layers in LAYERS:
        workload, times = SiluWorkload(layers, 4), []
        with collector_off():
            for part in range(3):
                start_s = time.process_time()
                if part == 0:
                    graph = record(workload, backend)
                elif part == 1:
                    timed(graph, workload, backend)
                else:
                    Simulator(graph).named()
                times.append(time.process_time() - start_s)
        figures = " ".join(f"{took_s:8.2f}" for took_s in times)
        print(f"{layers:9} layers {figures} {sum(times) / layers * 1e6:7.0f}µs", flush=True)


def variants() -> None:
    """Of each variant, how many peaks have a plan as cheap as recorded, and what others lack."""
    for name, recorded_plans in recorded("plan_silu")["variants"].items():
        model, _, gradients = name.split("_")
        network = silu(8, retained=gradients == "retain", fused=model == "F")
        least: dict[int, int] = {}
        for peak, _, products, others in recorded_plans["all_P_H_Rm_Re"]:
            least[peak] = min(PRODUCT * products + others, least.get(peak, sys.maxsize))
        gaps = []
        for peak in sorted(least):
            cost = min(cost for p, cost in least.items() if p <= peak)
            plan = make_plan(network, Request(peak))
            if plan.recomputed != cost:
                on_top = "no plan" if plan.recomputed is None else f"+{plan.recomputed - cost}"
                gaps.append(f"{peak}: {on_top}")
        reached = f"{len(least) - len(gaps)} of {len(least)} peaks"
        print(f"{name:14} {reached:16} {', '.join(gaps)}", flush=True)


def growth() -> int:
    """Prints a line a problem; 1 if one took longer than it may."""
    print(
        f"{'problem':34} {'budget':>8} {'cost on top':>12} {'peak':>8}  {'by':18} seconds  a part"
    )
    is_over = False
    for name, made, budget, most_s in cases():
        of = made()
        start_s = time.process_time()
        plan = make_plan(of, Request(budget))
        took_s = time.process_time() - start_s
        print(line(name, budget, plan, took_s), end="")
        if most_s is not None:
            is_over = is_over or took_s > most_s
            print(f"  {'over' if took_s > most_s else 'within'} {most_s:g} s", end="")
        print(flush=True)
    return int(is_over)


def line(name: str, budget: int, plan: Plan, took_s: float) -> str:
    """One row."""
    on_top = 0.0
    if plan.recomputed is not None and plan.problem.base_cost:
        on_top = plan.recomputed / plan.problem.base_cost
    proved = "=" if plan.proved_optimal else " "
    size = (
        getattr(plan.problem, "n", None)
        or len(getattr(plan.problem, "nodes", ()))
        or getattr(plan.problem, "stages", 1)
    )
    return (
        f"{name:34} {budget:8} {on_top:11.1%}{proved} {plan.peak or 0:8}  {plan.planner:18} "
        f"{took_s:7.2f} {took_s / size * 1e6:6.1f}µs"
    )


def cases() -> Iterator[Case]:
    """The problems, each kind growing."""
    for layers in (8, 28, 111, 333):
        most_s = 2.0 if layers == 111 else None
        for share, budget in (("a third", 3 * layers), ("a tenth", layers // 3 + 4)):
            name = f"silu, {9 * layers} nodes, {share} of all"
            yield name, lambda n=layers: silu(n, retained=False), budget, most_s
    for count in (1_000, 10_000, 100_000):
        most_s = 10.0 if count == 100_000 else None
        yield f"dag, a chain of {count} nodes", lambda n=count: line_of(n), count // 50, most_s
        yield f"chain of {count} stages", lambda n=count: chain_of(n), count // 20, most_s
    for n in (1_000, 100_000, 1_000_000):
        yield f"{n} steps", lambda n=n: StepsProblem(n), 20, None


def line_of(count: int) -> Any:
    """A dag that is a chain: half of the nodes forward, half backward."""
    half = count // 2
    forward = [[f"f{i}", 1, 1, [f"f{i - 1}"] if i else []] for i in range(half)]
    backward = [
        [f"g{i}", 2, 1, [*([f"g{i + 1}"] if i < half - 1 else []), f"f{i}"]]
        for i in reversed(range(half))
    ]
    once = [node[0] for node in backward]
    return problem("dag", nodes=forward + backward, goals=["g0"], once=once)


def chain_of(count: int) -> Any:
    """Stages whose costs and sizes differ."""
    return problem(
        "chain",
        uf=[1 + i % 3 for i in range(count)],
        ub=[2 + i % 3 for i in range(count)],
        A=[1 + i % 2 for i in range(count + 1)],
        B=[2 + i % 5 for i in range(count)],
    )


if __name__ == "__main__":
    sys.exit(main())
