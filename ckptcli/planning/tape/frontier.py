"""The frontier of peak against cost: what each budget buys.

Every schedule that a search looks at is a point, so that a few searches give many; points that
another one beats in both are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.choice import Named
from ckptcli.planning.tape.greedy import EFFORT, Greedy
from ckptcli.planning.unbeaten import unbeaten

BUDGETS = 10
"""So many budgets are searched for, from the floor up to the peak of holding everything."""

MOST_POINTS = 40


@dataclass(frozen=True, slots=True)
class Point:
    """A plan, or a named strategy, as a point.

    Attributes:
        name: the strategy's; "" for a plan.
        peak_bytes, held_bytes: above parameters and input, at the peak and after forward.
        cost: of all that is computed.
        time_s: predicted seconds of a pass; None where the program was not timed.
        is_dominated: whether a point of the frontier needs less of both, or as much of one.
    """

    name: str
    peak_bytes: int
    held_bytes: int
    cost: Number
    time_s: float | None
    is_dominated: bool = False


def frontier(
    problem: ProgramProblem, named: Sequence[Named], stop: Callable[[], bool] = lambda: False
) -> list[Point]:
    """The plans that no other beats, largest peak first, and every named strategy among them."""
    smallest_first = attrgetter("peak_bytes", "cost")
    plans = _thinned(unbeaten(_points(problem, stop), smallest_first, attrgetter("cost")))
    points = [
        Point(
            strategy.name,
            strategy.peak_bytes if problem.with_workspace else strategy.ledger_bytes,
            strategy.held_bytes,
            strategy.cost(problem),
            strategy.time_s(problem),
        )
        for strategy in named
    ]
    marked = [_marked(point, plans) for point in points]
    return sorted([*plans, *marked], key=lambda point: (-point.peak_bytes, point.cost))


def _points(problem: ProgramProblem, stop: Callable[[], bool]) -> list[Point]:
    least = problem.profile.floor().peak_bytes
    whole = Greedy(problem.player, least)
    most = max(least, whole.everything().played.peak_bytes)
    found: dict[tuple[int, Number], Point] = {}
    for step in range(BUDGETS):
        if stop():
            break
        budget = least + (most - least) * step // (BUDGETS - 1)
        search = Greedy(problem.player, budget, stop, EFFORT // BUDGETS)
        search.run()
        for tried in search.all_tried():
            cost = problem.base_cost + tried.cost
            peak_bytes, held_bytes = tried.played.peak_bytes, tried.played.held_bytes
            if (peak_bytes, cost) not in found:
                time_s = problem.schedule_time_s(tried.schedule)
                found[peak_bytes, cost] = Point("", peak_bytes, held_bytes, cost, time_s)
    return list(found.values())


def _thinned(points: list[Point]) -> list[Point]:
    """At most `MOST_POINTS`, the first and the last among them."""
    count = len(points)
    if count <= MOST_POINTS:
        return points
    places = {round(step * (count - 1) / (MOST_POINTS - 1)) for step in range(MOST_POINTS)}
    return [points[place] for place in sorted(places)]


def _marked(point: Point, plans: Sequence[Point]) -> Point:
    """A named strategy, dominated if a plan takes no more of either and less of one."""
    beaten = any(
        plan.peak_bytes <= point.peak_bytes
        and plan.cost <= point.cost
        and (plan.peak_bytes < point.peak_bytes or plan.cost < point.cost)
        for plan in plans
    )
    return replace(point, is_dominated=beaten)
