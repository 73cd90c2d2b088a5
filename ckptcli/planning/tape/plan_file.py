"""A plan of the tape in a file: a `ckpt.plan/1` object with the program that it is for.

A plan that is a named strategy has that name instead of actions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckptcli.errors import PlanError, UsageError
from ckptcli.planning.plan import SCHEMA
from ckptcli.planning.tape.program import Made, made_of
from ckptcli.planning.tape.schedule import Schedule, schedule_of


@dataclass(frozen=True, slots=True)
class TapePlan:
    """What a pass executes.

    Attributes:
        schedule: what is held and computed; None for a named strategy.
        strategy: its name; "" for a schedule.
        program: the nodes of the program, in order.
        loaded: how many of them are made before the forward pass.
    """

    schedule: Schedule | None
    strategy: str
    program: tuple[Made, ...]
    loaded: int

    def to_json(self) -> dict[str, Any]:
        """What a plan file has beside the figures of the plan."""
        actions = [] if self.schedule is None else list(self.schedule.actions())
        return {
            "strategy": self.strategy or None,
            "loaded": self.loaded,
            "program": [list(made) for made in self.program],
            "actions": actions,
        }


def read_plan_file(path: Path) -> TapePlan:
    """The plan in a file.

    Raises:
        UsageError: the file cannot be read, or holds no plan for the tape.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the plan `{path}` cannot be read: {reason}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise UsageError(
            f"`{path}` is no plan: it lacks the schema `{SCHEMA}`", "write one with `ckpt plan`"
        )
    if not data.get("feasible"):
        raise UsageError(f"`{path}` is a plan that fits no budget", "give a larger --budget")
    _check_is_of_a_program(path, data)
    return _plan(path, data)


def _check_is_of_a_program(path: Path, data: dict[str, Any]) -> None:
    """Plans of models are checkpoints that have a name already, and no actions of the tape."""
    if (kind := data.get("kind")) in ("module", "function"):
        raise UsageError(
            f"`{path}` is a plan for a {kind}, and `-s plan:FILE` takes that of a program",
            f"give its strategy, beside its --{kind}: -s {data.get('strategy')}",
        )


def _plan(path: Path, data: dict[str, Any]) -> TapePlan:
    try:
        program = made_of(data["program"])
        loaded, strategy = int(data["loaded"]), str(data.get("strategy") or "")
        schedule = None if strategy else schedule_of(_actions(data["actions"]))
        plan = TapePlan(schedule, strategy, program, loaded)
    except PlanError as error:
        raise UsageError(f"`{path}`: {error.message}", error.hint) from error
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"`{path}` is no plan for a program of the engine: {type(error).__name__} at {error}",
            "write one with `ckpt plan --workload NAME --export FILE`",
        ) from error
    if schedule is not None and (wrong := _out_of_range(schedule, len(program))) is not None:
        raise UsageError(f"`{path}` names node {wrong}, and its program has {len(program)}")
    return plan


def _actions(entries: Sequence[Any]) -> list[tuple[str | int, ...]]:
    return [tuple(entry) for entry in entries]


def _out_of_range(schedule: Schedule, count: int) -> int | None:
    """The first node that the program does not have."""
    for retrieval in schedule.retrievals:
        moves = (move if move >= 0 else ~move for move in retrieval.before)
        for node in (retrieval.step, retrieval.node, *moves, *retrieval.after):
            if node >= count:
                return node
    return next((node for node in schedule.held if node >= count), None)
