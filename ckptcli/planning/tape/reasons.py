"""Why a schedule holds what it holds, and moves what it moves: who needs a value, and what
rebuilding it would cost.

A value is rebuilt from others that are held and from leaves: by its own op and by those of what
lies between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli import units
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.names import value_names
from ckptcli.planning.tape.schedule import Schedule

MOST_OPS = 3
"""Of more ops that rebuild a value the dearest are named."""

MOST_STEPS = 3
"""So many are named before which a value comes back."""


def schedule_reasons(problem: ProgramProblem, schedule: Schedule) -> Iterator[str]:
    """A line a value that is held or moved, and one for all that is computed again."""
    again = list(schedule.computations())
    if not again and not schedule.moved:
        yield f"every value is held, {len(schedule.held)} in all; nothing is computed again"
        return
    yield from _held_reasons(problem, schedule)
    yield from _moved_reasons(problem, schedule)
    what = f"{units.count(len(again), 'computation')} again, of "
    figures = _figures(problem, again)
    yield f"{what}{units.count(len(schedule.computed), 'value')}{f': {figures}' if figures else ''}"


def _held_reasons(problem: ProgramProblem, schedule: Schedule) -> Iterator[str]:
    model = problem.model
    names = value_names(problem.graph)
    first_step: dict[int, int] = {}
    for retrieval in schedule.retrievals:
        first_step.setdefault(retrieval.node, retrieval.step)
    for node in sorted(schedule.held):
        step = first_step.get(node)
        need = (
            "needed to compute others again"
            if step is None
            else f"needed by the backward step of {names[step]}"
        )
        size = units.size(model.memory_bytes(node))
        rebuilt = _rebuilt_by(problem, node, schedule.held)
        yield f"{names[node]} ({size}): {need}; rebuilding costs {_cost(problem, rebuilt)}"


def _moved_reasons(problem: ProgramProblem, schedule: Schedule) -> Iterator[str]:
    """Before which steps a value comes back, and how much is moved for it."""
    names = value_names(problem.graph)
    steps: dict[int, list[str]] = {node: [] for node in schedule.moved}
    for retrieval in schedule.retrievals:
        for move in retrieval.before:
            if move in steps:
                steps[move].append(names[retrieval.step])
    for node in sorted(schedule.moved):
        size = units.size(problem.model.memory_bytes(node))
        rebuilt = _rebuilt_by(problem, node, schedule.held)
        yield (
            f"{names[node]}: moved to the host once made, back before the backward "
            f"{_listed(steps[node])}, {size} each way; rebuilding costs {_cost(problem, rebuilt)}"
        )


def _listed(steps: Sequence[str]) -> str:
    """`step of a`, `steps of a, b, c and 2 more`."""
    return f"step{'s' if len(steps) > 1 else ''} of {units.some(steps, MOST_STEPS)}"


def _rebuilt_by(problem: ProgramProblem, node: int, held: frozenset[int]) -> list[int]:
    """The nodes that are computed if this one is not held, the others are, and nothing else is
    there; itself first.
    """
    model = problem.model
    found, stack = [node], [node]
    seen = {node}
    while stack:
        for parent in model.parents[stack.pop()]:
            if parent not in seen and parent not in held and model.can_recompute[parent]:
                seen.add(parent)
                found.append(parent)
                stack.append(parent)
    return found


def _cost(problem: ProgramProblem, rebuilt: Sequence[int]) -> str:
    """`a matmul, 524,288 operations, 21.30µs`."""
    nodes, costs = problem.graph.nodes, problem.model.costs
    dearest = sorted(rebuilt, key=lambda node: -costs[node])[:MOST_OPS]
    words = ", ".join(nodes[node].op or "" for node in dearest)
    if len(rebuilt) == 1:
        only = nodes[rebuilt[0]]
        words = f"one {only.op}" if only.moved_bytes else f"one {only.op}, a view"
    elif len(rebuilt) > MOST_OPS:
        words = f"{len(rebuilt)} ops ({words}, ...)"
    figures = _figures(problem, rebuilt)
    return f"{words}: {figures}" if figures else words


def _figures(problem: ProgramProblem, computed: Sequence[int]) -> str:
    """What so many computations cost in the plan's unit, and in time where that is known."""
    cost = sum(problem.model.costs[node] for node in computed)
    unit = problem.cost_name
    parts = [_in_unit(cost, unit)] if unit in _UNITS and cost else []
    if problem.graph.is_timed and computed:
        parts.append(units.duration(sum(problem.graph.nodes[node].time_s for node in computed)))
    return ", ".join(parts)


_UNITS = {"flops": "operation", "count": "op"}


def _in_unit(cost: Number, unit: str) -> str:
    return units.count(cost, _UNITS[unit], f"{cost:,}")
