"""A plan as the JSON object `ckpt.plan/1`."""

from __future__ import annotations

import json
from typing import Any

from ckptcli.planning.plan import MOST_ACTIONS, SCHEMA, Plan
from ckptcli.planning.planners.base import Floor


def plan_object(plan: Plan) -> dict[str, Any]:
    """The object without its actions."""
    return {
        "schema": SCHEMA,
        "kind": plan.problem.kind,
        "feasible": plan.feasible,
        "planner": plan.planner,
        "runs": plan.runs,
        "budget": plan.budget,
        "cost": plan.cost,
        "recomputed": plan.recomputed,
        "evaluations": plan.evaluations,
        "peak": plan.peak,
        "min_budget": plan.min_budget,
        "min_budget_proved": plan.min_budget_proved,
        "set_by": None if plan.floor is None else _floor_object(plan.floor),
        "lower_bound": plan.lower_bound,
        "gap": plan.gap,
        "proved_optimal": plan.proved_optimal,
        "limits": list(plan.limits),
        "limited_by": list(plan.limited_by),
        "saved": None if plan.saved is None else list(plan.saved),
        "planners": [
            {"planner": a.planner, "cost": a.cost, "peak": a.peak, "note": a.note}
            for a in plan.attempts
        ],
    }


def plan_text(plan: Plan) -> str:
    """The object as text, with `actions`, one a line, unless they are more than `MOST_ACTIONS`."""
    text = json.dumps(plan_object(plan), indent=2, allow_nan=False)
    if plan.actions is None or plan.length is None or plan.length > MOST_ACTIONS:
        return text + "\n"
    lines = ",\n".join(f"    {json.dumps(action)}" for action in plan.actions())
    actions = f"[\n{lines}\n  ]" if lines else "[]"
    return f'{text.removesuffix("}").rstrip()},\n  "actions": {actions}\n}}\n'


def _floor_object(floor: Floor) -> dict[str, Any]:
    return {
        "least": floor.bytes,
        "action": floor.where,
        "values": list(floor.values),
        "workspace": floor.workspace,
    }
