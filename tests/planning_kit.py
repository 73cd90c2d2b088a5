"""Planning problems for the tests: recorded ones, and the silu network of `docs/planning.md`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from ckptcli.planning.making import make_plan
from ckptcli.planning.plan import Plan
from ckptcli.planning.planners.base import Deadline, Request
from ckptcli.planning.play.base import play
from ckptcli.planning.problems.base import Problem
from ckptcli.planning.problems.dag import DagProblem
from ckptcli.planning.problems.reading import problem_of

DATA = Path(__file__).parent / "data"
PRODUCT = 100


@cache
def recorded(name: str) -> Any:
    """A file of goldens: `plan_chains`, by name."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def problem(kind: str, **values: Any) -> Any:
    """A problem of this kind."""
    found, _ = problem_of("test", {"kind": kind, **values})
    return found


def planned(
    of: Problem, budget: int | None, planner: str = "auto", limit_s: float | None = None
) -> Plan:
    """The plan, played once more."""
    plan = make_plan(of, Request(budget, Deadline(limit_s)), planner)
    if plan.feasible and plan.actions is not None:
        played = play(of, plan.actions())
        assert (played.cost, played.peak) == (plan.cost, plan.peak)
        assert budget is None or played.peak <= budget
    return plan


def silu(layers: int, *, retained: bool, fused: bool = False) -> DagProblem:
    """The layered silu network, every tensor of size 1, a product costing 100, anything else 1.

    Layer i: m = h @ w, s = sigmoid(m), h = m * s; backward a = g * s, d = g * m,
    c = d * s * (1 - s), e = a + c, then the gradients of input and weight. Fused, neither s nor a,
    d, c are there.
    """
    nodes: list[list[Any]] = []
    once: list[str] = []

    def node(name: str, cost: int, *parents: str, is_gradient: bool = False) -> None:
        nodes.append([name, cost, 1, list(parents)])
        if is_gradient:
            once.append(name)

    for i in range(1, layers + 1):
        node(f"m{i}", PRODUCT, *([f"h{i - 1}"] if i > 1 else []))
        if not fused:
            node(f"s{i}", 1, f"m{i}")
        node(f"h{i}", 1, *([f"m{i}"] if fused else [f"m{i}", f"s{i}"]))
    node(f"g{layers}", 1, is_gradient=True)
    for i in range(layers, 0, -1):
        if fused:
            node(f"e{i}", 1, f"g{i}", f"m{i}", is_gradient=True)
        else:
            node(f"a{i}", 1, f"g{i}", f"s{i}", is_gradient=True)
            node(f"d{i}", 1, f"g{i}", f"m{i}", is_gradient=True)
            node(f"c{i}", 1, f"d{i}", f"s{i}", is_gradient=True)
            node(f"e{i}", 1, f"a{i}", f"c{i}", is_gradient=True)
        if i > 1:
            node(f"g{i - 1}", PRODUCT, f"e{i}", is_gradient=True)
        node(f"w{i}", PRODUCT, f"e{i}", *([f"h{i - 1}"] if i > 1 else []), is_gradient=True)
    weights = [f"w{i}" for i in range(1, layers + 1)]
    found: DagProblem = problem(
        "dag",
        nodes=nodes,
        goals=[f"h{layers}", *weights],
        keep=weights if retained else [],
        once=once,
    )
    return found
