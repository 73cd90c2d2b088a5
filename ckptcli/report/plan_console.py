"""A plan for the eye: the answer first, what sets it, then what each planner came to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.planning.plan import Attempt, Plan
from ckptcli.planning.problems.base import Number
from ckptcli.planning.summary import Summary, summary_of
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.screen import Screen

COLUMNS = (
    Column("planner", 0, "text"),
    Column("cost", 1),
    Column("peak", 2),
    Column("says", 3, "text", folds_to=20),
)
MOST_NAMES = 12
MOST_VALUES = 24


def render_plan(plan: Plan, screen: Screen) -> str:
    """The whole screen, ready to print."""
    parts: list[str | Text | Table] = [screen.wrapped(line) for line in _sentences(plan)]
    summary = summary_of(plan)
    if summary is not None:
        parts += [screen.wrapped(line, indent="  ") for line in _in_short(summary)]
    if len(plan.attempts) > 1:
        parts += ["", screen.draw(_table(plan.attempts))]
    return screen.render(*parts)


def _sentences(plan: Plan) -> Iterator[str]:
    yield _answer(plan)
    if plan.feasible:
        yield from _worth(plan)
    yield from _least(plan)
    if plan.saved is not None:
        yield f"kept for backward: {_listed(plan.saved) or 'nothing'}"
    if plan.limited_by:
        yield f"limited by {'; '.join(plan.limited_by)}"


def _in_short(summary: Summary) -> Iterator[str]:
    """The values that are held and why, then those that are computed again."""
    for held in summary.held[:MOST_VALUES]:
        needed = f"needed by {held.user}" if held.user else "a result"
        again = "" if held.again is None else f"; making it again costs {_figure(held.again)}"
        yield f"{held.name} is held: {needed}{again}"
    if len(summary.held) > MOST_VALUES:
        yield f"and {len(summary.held) - MOST_VALUES} more are held"
    again_names = [f"{v.name} {v.times}x" if v.times > 1 else v.name for v in summary.again]
    if again_names:
        yield f"computed again: {_listed(again_names)}"


def _answer(plan: Plan) -> str:
    """`dag of 72 nodes within 11 units of memory: cost 2363, peak 11, by exact`."""
    allowed = "" if plan.budget is None else f" within {_budget(plan.budget, plan.problem.unit)}"
    if not plan.feasible:
        return f"{plan.problem.title}{allowed}: no plan was found"
    found = f"cost {_figure(plan.cost)}, peak {_figure(plan.peak)}"
    return f"{plan.problem.title}{allowed}: {found}, by {plan.planner}"


def _worth(plan: Plan) -> Iterator[str]:
    """How far it is from computing everything once, and from the bound."""
    if plan.recomputed and plan.problem.base_cost:
        share = units.percent(plan.recomputed / plan.problem.base_cost)
        yield f"{_figure(plan.recomputed)} of it for what is computed again, {share} on top"
    if plan.proved_optimal:
        yield "no plan within the budget costs less"
    elif plan.gap is not None and plan.cost:
        share = units.percent(plan.gap / plan.cost)
        least = _figure(plan.lower_bound)
        yield f"no plan costs less than {least}, {_figure(plan.gap)} ({share}) below this one"
    if plan.runs == "program":
        yield "it drops, computes again or reorders in forward: it runs as a program, not on a tape"


def _least(plan: Plan) -> Iterator[str]:
    """The smallest budget and what sets it."""
    if plan.min_budget is not None:
        proved = (
            "the smallest feasible budget is"
            if plan.min_budget_proved
            else ("the smallest budget that a plan was found for is")
        )
        yield f"{proved} {_figure(plan.min_budget)}"
    floor = plan.floor
    if floor is None or (plan.feasible and not plan.min_budget_proved):
        return
    beside = f", and {_figure(floor.workspace)} of workspace" if floor.workspace else ""
    least = f"no plan takes less than {_figure(floor.bytes)}"
    needs = f"`{floor.where}` needs {_listed(floor.values)} together{beside}"
    yield f"{least}: {needs}" if floor.values else least


def _budget(budget: Number, unit: str) -> str:
    return units.count(budget, unit, _figure(budget))


def _listed(names: Sequence[str]) -> str:
    return units.some(names, MOST_NAMES)


def _figure(value: Number | None) -> str:
    if value is None:
        return units.UNKNOWN
    return str(value) if isinstance(value, int) else f"{value:g}"


def _table(attempts: Sequence[Attempt]) -> cells.Table:
    rows = [
        [Cell(a.planner), Cell(_cell(a.cost)), Cell(_cell(a.peak)), Cell(a.note)] for a in attempts
    ]
    return cells.Table(COLUMNS, rows)


def _cell(value: Number | None) -> str:
    return "-" if value is None else _figure(value)
