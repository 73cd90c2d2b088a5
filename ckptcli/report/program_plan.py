"""A program's plan for the eye: the answer, what it covers, what sets it, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.planning.planners.base import Floor
from ckptcli.planning.problems.base import Number
from ckptcli.planning.tape.choice import Choice
from ckptcli.planning.tape.frontier import Point
from ckptcli.planning.tape.held_names import Counterpart
from ckptcli.planning.tape.measured import Measured
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.counterpart import counterpart_code, counterpart_sentences
from ckptcli.report.plan_limit import (
    allowed_bytes,
    fits_word,
    least_device_sentence,
    limit_sentence,
)
from ckptcli.report.screen import Screen

NAMED = (
    Column("strategy", 0, "text"),
    Column("peak", 1),
    Column("holds", 4),
    Column("extra cost", 2),
    Column("predicted time", 3, short="time"),
    Column("", 5, "text"),
)
UNTIMED = tuple(column for column in NAMED if column.short != "time")
MOST_REASONS = 40
MOST_LIVE = 8
"""Of the values that are live at the floor."""

PLOT_ROWS, PLOT_COLUMNS = 12, 60


def render_choice(
    choice: Choice,
    measured: Measured | None,
    points: Sequence[Point] | None,
    counterpart: Counterpart | None,
    screen: Screen,
) -> str:
    """The whole screen, ready to print."""
    parts: list[str | Text | Table] = [screen.wrapped(line) for line in sentences(choice, measured)]
    if counterpart is not None:
        parts += [screen.wrapped(line) for line in counterpart_sentences(counterpart)]
    reasons = choice.reasons() if points is None else ()
    if reasons:
        parts.append("")
        parts += [screen.wrapped(line, indent="  ") for line in reasons[:MOST_REASONS]]
        if len(reasons) > MOST_REASONS:
            parts.append(f"  and {len(reasons) - MOST_REASONS} more, with --json")
    if points is not None:
        parts += ["", *_plot(choice, points)]
    if points is not None or choice.named:
        parts += ["", screen.draw(points_table(choice, points))]
    if counterpart is not None:
        parts += counterpart_code(counterpart)
    return screen.render(*parts)


def sentences(choice: Choice, measured: Measured | None) -> Iterator[str]:
    """The answer, what it covers, what limits it and what sets the floor."""
    plan, graph = choice.plan, choice.problem.graph
    allowed = "" if plan.budget is None else f", within {allowed_bytes(plan.budget, plan.feasible)}"
    if not plan.feasible:
        yield f"{choice.problem.title}{allowed}: no plan was found"
    else:
        again = "nothing"
        if plan.recomputed:
            again = f"{_share(plan.recomputed, choice)} of the forward pass"
        yield (
            f"{choice.problem.title}{allowed}: peak {units.exact_size(plan.peak)}, "
            f"{again} computed again{' or moved' if plan.host else ''}, by {plan.planner}"
        )
    if choice.time_s is not None:
        yield f"predicted time {_predicted(choice, choice.time_s)}"
    yield (
        f"a budget covers all that the pass adds above {units.size(graph.base_bytes)} of "
        f"parameters and input: values, gradients ({_gradients(graph.consumes)}), "
        f"{_workspace(choice)}; cost is {_COSTS[choice.problem.cost_name]}"
    )
    if choice.limit is not None:
        yield limit_sentence(choice.limit)
    if choice.problem.moving.host_bytes:
        yield _host_sentence(choice)
    yield from _bounds(choice)
    if measured is not None:
        yield _measured(choice, measured)


def _predicted(choice: Choice, time_s: float) -> str:
    """`1.20ms a pass, 1.06 times none's: ...`."""
    none_s = choice.problem.once_time_s
    beside = f", {time_s / none_s:.2f} times none's" if none_s else ""
    moves = ""
    if choice.plan.host:
        is_known = choice.problem.cost_name == "time"
        moves = ", moves among it" if is_known else ", moves to the host and back left out"
    return (
        f"{units.duration(time_s)} a pass{beside}: what it executes forward, backward and again, "
        f"added up{moves}"
    )


_COSTS = {
    "flops": "floating-point operations",
    "count": "the number of ops",
    "time": "the time of each op",
}


def _workspace(choice: Choice) -> str:
    if choice.problem.counts_workspace:
        return "the workspace of kernels"
    if choice.problem.graph.sees_workspace:
        return "no workspace"
    backend = choice.problem.graph.backend
    return f"not what kernels take for themselves, which nobody sees on {backend}"


def _host_sentence(choice: Choice) -> str:
    """What is on the host, and the price."""
    moving, plan, cost = choice.problem.moving, choice.plan, choice.problem.cost_name
    noun = "operation" if cost == "flops" else "op"
    price = (
        f"goes at {1e-9 / moving.byte_cost:g} GB/s"
        if cost == "time"
        else f"costs {units.count(moving.byte_cost, noun, f'{moving.byte_cost:g}')} a byte"
    )
    used = f"at most {units.exact_size(plan.host)}" if plan.host else "nothing"
    allowed = units.size(moving.host_bytes)
    return f"{used} on the host, {allowed} allowed; a move {price}, each way"


def _gradients(consumes: bool) -> str:
    return "let go of once complete" if consumes else "kept to the end"


def _bounds(choice: Choice) -> Iterator[str]:
    plan = choice.plan
    if plan.feasible and plan.proved_optimal and plan.recomputed:
        yield "no plan in the order of the tape's gradients costs less"
    elif plan.gap is not None and plan.lower_bound is not None and plan.recomputed:
        yield (
            f"no plan in the order of the tape's gradients computes less than "
            f"{_extra(plan.lower_bound, choice)} of the forward pass again, "
            f"{_share(plan.gap, choice)} below this one"
        )
    if choice.limited_by:
        yield f"limited by {'; '.join(choice.limited_by)}"
    if plan.min_budget is not None and not plan.feasible:
        known = "is" if plan.min_budget_proved else "that a plan was found for is"
        yield f"the smallest budget {known} {units.exact_size(plan.min_budget)}"
        if choice.limit is not None:
            yield least_device_sentence(choice.limit, plan.min_budget)
    if plan.floor is not None:
        yield _floor_sentence(plan.floor)


def _floor_sentence(floor: Floor) -> str:
    """The least that any plan takes, and what is live then."""
    beside = f" and {units.size(floor.workspace)} beside these" if floor.workspace else ""
    live = f": {units.some(floor.values, MOST_LIVE)}{beside}" if floor.values else ""
    least = units.size(floor.bytes)
    return f"no plan takes less than {least}, which is live during {floor.where}{live}"


def _measured(choice: Choice, measured: Measured) -> str:
    plan = choice.plan
    same = _beside_predicted(measured.peak_bytes, plan.peak)
    beside = ""
    if choice.time_s:
        beside = f" a pass, {measured.time_s / choice.time_s:.2f} times the predicted"
    if measured.none_time_s:
        beside += f", {measured.time_s / measured.none_time_s:.2f} times none's"
        if choice.time_s and choice.problem.once_time_s:
            beside += f" (predicted {choice.time_s / choice.problem.once_time_s:.2f})"
    equal = {True: "; gradients identical", False: "; gradients DIFFER", None: ""}
    within = "" if measured.within_budget else ", above the budget"
    return (
        f"measured: peak {units.exact_size(measured.peak_bytes)}, "
        f"{same}{within}{_on_host(choice, measured)}; {units.duration(measured.time_s)}{beside}"
        f"{equal[measured.gradients_equal]}"
    )


def _on_host(choice: Choice, measured: Measured) -> str:
    """What was on the host, beside what was predicted."""
    if not choice.problem.moving.host_bytes:
        return ""
    host_bytes, predicted = measured.host_bytes, choice.plan.host
    same = _beside_predicted(host_bytes, predicted)
    return f"; on the host {units.exact_size(host_bytes)}, {same}"


def _beside_predicted(measured: int | None, predicted: Number | None) -> str:
    if predicted is None or measured == predicted:
        return "as predicted"
    return f"predicted {units.count(predicted, 'byte')}"


def _share(cost: Number, choice: Choice) -> str:
    base = choice.problem.base_cost
    return units.percent(cost / base) if base else str(cost)


def _extra(cost: Number, choice: Choice) -> str:
    return _share(cost - choice.problem.base_cost, choice)


def points_of(choice: Choice, points: Sequence[Point] | None) -> Sequence[Point]:
    """Those of the frontier, or without one the named strategies."""
    if points is not None:
        return points
    problem = choice.problem
    return [
        Point(
            named.name,
            named.peak_bytes if problem.with_workspace else named.ledger_bytes,
            named.held_bytes,
            named.cost(problem),
            named.time_s(problem),
        )
        for named in choice.named
    ]


def points_table(choice: Choice, points: Sequence[Point] | None) -> cells.Table:
    """Plans and strategies by peak, and which are dominated; without a frontier every named
    strategy, and whether it fits.
    """

    def word(point: Point) -> str:
        if points is not None:
            return "dominated" if point.is_dominated else ""
        return fits_word(point.peak_bytes, choice.plan.budget)

    rows = points_of(choice, points)
    scale = units.time_scale(point.time_s for point in rows)
    return cells.Table(
        NAMED if choice.problem.graph.is_timed else UNTIMED,
        [[Cell(text) for text in _texts(choice, point, word(point), scale)] for point in rows],
    )


def _texts(choice: Choice, point: Point, word: str, scale: units.TimeScale | None) -> Iterator[str]:
    yield from (point.name or "plan", units.size(point.peak_bytes), units.size(point.held_bytes))
    yield _extra(point.cost, choice)
    if point.time_s is not None:
        yield units.duration(point.time_s, scale)
    yield word


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
    left = f"{units.percent(top)} computed again"
    lines = [left, *("|" + "".join(row).rstrip() for row in grid), "+" + "-" * PLOT_COLUMNS]
    return [*lines, f" peak {units.size(least)} to {units.size(most)}", f" {_legend(points)}"]


def _legend(points: Sequence[Point]) -> str:
    """What the marks are; strategies that differ in their arguments are one."""
    names = sorted({point.name.partition(":")[0] for point in points if point.name})
    letters = sorted({name[0] for name in names})
    of_letter = (f"{one} {' or '.join(n for n in names if n[0] == one)}" for one in letters)
    return ", ".join([". a plan", *of_letter])
