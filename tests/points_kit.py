"""Small silu networks to profile as the points of a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.measure.rounds import Plan
from ckptcli.profiling.points import ProgramPoint, Surroundings
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload

LAYERS = (1, 2, 3)

Opened = Callable[[], Workload]


def surroundings(backend: Backend | None = None, **changes: Any) -> Surroundings:
    known = Surroundings(
        workload={"name": "silu", "title": "n = 8, layers = 1..3"},
        strategies=[parse_strategy(name) for name in ("none", "balanced")],
        reference=None,
        backend=backend or open_backend(),
        engines=(),
        plan=Plan(reps=2),
        threshold=0.02,
        config={"layers": "1..3"},
        command=(),
    )
    return replace(known, **changes)


def planned(
    open: Callable[[int], Workload] = lambda layers: SiluWorkload(layers, 8),
) -> list[ProgramPoint]:
    def opener(layers: int) -> Opened:
        return lambda: open(layers)

    return [ProgramPoint({"layers": layers}, opener(layers)) for layers in LAYERS]
