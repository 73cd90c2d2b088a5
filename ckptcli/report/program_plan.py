"""A program's plan for the eye: the answer, what it covers, what sets it, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.planning.problems.base import Number
from ckptcli.planning.tape.choice import Choice
from ckptcli.planning.tape.frontier import Point
from ckptcli.planning.tape.measured import Measured
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.device_limit import least_device_sentence, limit_sentence
from ckptcli.report.screen import Screen

NAMED = (
    Column("strategy", 0, "text"),
    Column("peak", 1),
    Column("holds", 3),
    Column("extra cost", 2),
    Column("", 4, "text"),
)
MOST_REASONS = 40
PLOT_ROWS, PLOT_COLUMNS = 12, 60


def render_choice(
    choice: Choice,
    cost: str,
    measured: Measured | None,
    points: Sequence[Point] | None,
    screen: Screen,
) -> str:
    """The whole screen, ready to print; `cost` is what costs count."""
    parts: list[str | Text | Table] = [
        screen.wrapped(line) for line in _sentences(choice, cost, measured)
    ]
    reasons = choice.reasons() if points is None else ()
    if reasons:
        parts.append("")
        parts += [screen.wrapped(line, indent="  ") for line in reasons[:MOST_REASONS]]
        if len(reasons) > MOST_REASONS:
            parts.append(f"  and {len(reasons) - MOST_REASONS} more, with --json")
    if points is not None:
        parts += ["", *_plot(choice, points), "", screen.draw(_frontier(choice, points))]
    elif choice.named:
        parts += ["", screen.draw(_named(choice))]
    return screen.render(*parts)


def _sentences(choice: Choice, cost: str, measured: Measured | None) -> Iterator[str]:
    plan, graph = choice.plan, choice.problem.graph
    allowed = "" if plan.budget is None else f" within {units.size(plan.budget)}"
    if not plan.feasible:
        yield f"{choice.problem.title}{allowed}: no plan was found"
    else:
        extra = _share(plan.recomputed or 0, choice)
        yield (
            f"{choice.problem.title}{allowed}: peak {units.size(plan.peak)} ({plan.peak} bytes), "
            f"{extra} of the forward pass computed again, by {plan.planner}"
        )
    yield (
        f"a budget covers all that the pass adds above {units.size(graph.base_bytes)} of "
        f"parameters and input: values, gradients ({_gradients(graph.consumes)}), "
        f"{'the workspace of kernels' if choice.problem.with_workspace else 'no workspace'}; cost "
        f"is {_COSTS[cost]}"
    )
    if choice.limit is not None:
        yield limit_sentence(choice.limit)
    yield from _bounds(choice)
    if measured is not None:
        yield _measured(choice, measured)


_COSTS = {
    "flops": "floating-point operations",
    "count": "the number of ops",
    "time": "the time of each op",
}


def _gradients(consumes: bool) -> str:
    return "let go of once complete" if consumes else "kept to the end"


def _bounds(choice: Choice) -> Iterator[str]:
    plan = choice.plan
    if plan.feasible and plan.proved_optimal:
        yield "no plan in the order of gradients costs less"
    elif plan.feasible and plan.lower_bound is not None and plan.cost is not None:
        yield f"no plan costs less than {_share(plan.lower_bound, choice)} of the forward pass"
    if plan.limits and not plan.proved_optimal:
        yield f"limited by {'; '.join(plan.limits)}"
    if plan.min_budget is not None and not plan.feasible:
        known = "is" if plan.min_budget_proved else "that a plan was found for is"
        yield f"the smallest budget {known} {units.size(plan.min_budget)} ({plan.min_budget} bytes)"
        if choice.limit is not None:
            yield least_device_sentence(choice.limit, plan.min_budget)
    floor = plan.floor
    if floor is not None:
        values = f" with {', '.join(floor.values)}" if floor.values else ""
        beside = f" and {units.size(floor.workspace)} beside them" if floor.workspace else ""
        yield (
            f"no plan takes less than {units.size(floor.bytes)}: {floor.where} needs that"
            f"{values}{beside}"
        )


def _measured(choice: Choice, measured: Measured) -> str:
    plan = choice.plan
    same = "as predicted" if measured.peak_bytes == plan.peak else f"predicted {plan.peak} bytes"
    beside = ""
    if measured.none_time_s:
        beside = f", {measured.time_s / measured.none_time_s:.2f} times none's"
    equal = {True: "; gradients identical", False: "; gradients DIFFER", None: ""}
    within = "" if measured.within_budget else ", above the budget"
    return (
        f"measured: peak {units.size(measured.peak_bytes)} ({measured.peak_bytes} bytes), "
        f"{same}{within}; {units.duration(measured.time_s)}{beside}"
        f"{equal[measured.gradients_equal]}"
    )


def _share(cost: Number, choice: Choice) -> str:
    base = choice.problem.base_cost
    return f"{100 * cost / base:.3g} %" if base else str(cost)


def _extra(cost: Number, choice: Choice) -> str:
    return _share(cost - choice.problem.base_cost, choice)


def _named(choice: Choice) -> cells.Table:
    """Every named strategy, and whether it fits."""
    budget = choice.plan.budget
    rows = []
    for named in choice.named:
        peak = named.peak_bytes if choice.problem.with_workspace else named.ledger_bytes
        word = "" if budget is None else "fits" if peak <= budget else "does not fit"
        figures = (units.size(peak), units.size(named.held_bytes))
        extra = _extra(named.cost(choice.problem), choice)
        rows.append([Cell(text) for text in (named.name, *figures, extra, word)])
    return cells.Table(NAMED, rows)


def _frontier(choice: Choice, points: Sequence[Point]) -> cells.Table:
    """Plans and strategies by peak."""
    rows = []
    for point in points:
        word = "dominated" if point.is_dominated else ""
        figures = (units.size(point.peak_bytes), units.size(point.held_bytes))
        texts = (point.name or "plan", *figures, _extra(point.cost, choice), word)
        rows.append([Cell(text) for text in texts])
    return cells.Table(NAMED, rows)


def _plot(choice: Choice, points: Sequence[Point]) -> list[str]:
    """Peak from left to right, cost upwards; plans as dots, strategies by their first letters."""
    base = choice.problem.base_cost or 1
    least = min(point.peak_bytes for point in points)
    most = max(point.peak_bytes for point in points)
    top = max(point.cost for point in points) / base - 1
    grid = [[" "] * PLOT_COLUMNS for _ in range(PLOT_ROWS)]
    for point in sorted(points, key=lambda point: bool(point.name)):
        across = (point.peak_bytes - least) / max(1, most - least)
        up = (point.cost / base - 1) / top if top else 0.0
        column = round(across * (PLOT_COLUMNS - 1))
        grid[PLOT_ROWS - 1 - round(up * (PLOT_ROWS - 1))][column] = point.name[:1] or "."
    left = f"{100 * top:.3g} % computed again"
    lines = [left, *("|" + "".join(row).rstrip() for row in grid), "+" + "-" * PLOT_COLUMNS]
    return [*lines, f" peak {units.size(least)} to {units.size(most)}"]
