"""A program's plan as the JSON object `ckpt.plan/1`: what it covers, and what is beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ckptcli.planning.plan_json import plan_object
from ckptcli.planning.tape.choice import Choice
from ckptcli.planning.tape.frontier import Point
from ckptcli.planning.tape.measured import Measured


def choice_object(
    choice: Choice, measured: Measured | None, points: Sequence[Point] | None
) -> dict[str, Any]:
    """The object without its actions."""
    graph = choice.problem.graph
    tape = choice.tape
    return {
        **plan_object(choice.plan),
        "title": graph.title,
        "cost_unit": choice.problem.cost_name,
        "limited_by": list(choice.limited_by),
        "time_s": choice.time_s,
        "none_time_s": choice.problem.once_time_s,
        "covers": {
            "above_bytes": graph.base_bytes,
            "gradients": "consumed" if graph.consumes else "kept",
            "workspace": choice.problem.counts_workspace,
            "backend": graph.backend,
        },
        "host_memory": _host_object(choice),
        "device_memory": None if choice.limit is None else choice.limit.to_json(),
        "strategy": (tape.strategy or None) if tape else None,
        "reasons": list(choice.reasons()),
        "named": [
            {
                "strategy": named.name,
                "peak": named.peak_bytes,
                "ledger_peak": named.ledger_bytes,
                "held": named.held_bytes,
                "cost": named.cost(choice.problem),
                "time_s": named.time_s(choice.problem),
            }
            for named in choice.named
        ],
        "measured": None if measured is None else asdict(measured),
        "pareto": None if points is None else [asdict(point) for point in points],
    }


def _host_object(choice: Choice) -> dict[str, Any] | None:
    """What may be on the host, what of it is, and what a byte costs; None where nothing may."""
    moving = choice.problem.moving
    if not moving.host_bytes:
        return None
    return {
        "host_bytes": moving.host_bytes,
        "peak_bytes": choice.plan.host,
        "byte_cost": moving.byte_cost,
    }
