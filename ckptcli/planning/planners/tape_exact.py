"""The cheapest schedule of a program on the tape, for programs of few values."""

from __future__ import annotations

from collections.abc import Callable

from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.program import UNBOUNDED_BYTES, ProgramProblem
from ckptcli.planning.tape.exact import MOST_VALUES, ExactSearch
from ckptcli.planning.tape.names import value_names
from ckptcli.planning.tape.schedule import Schedule

MOST_STATES = 200_000
"""Of a search, so that the same budget gives the same plan: some seconds."""

MOST_SQUEEZES = 4
STATES_FOR_SMALLEST = 200_000
STATES_BESIDE_A_PLAN = 20_000
"""Of all searches for the smallest budget, where nothing fits, and where something does."""


@register
class TapeExact(Planner):
    """A* in the order of gradients."""

    keyword = "tape-exact"
    summary = "A* over backward steps and resident values, up to about 25 values"
    guarantee = "the cheapest in the order of gradients"
    kinds = (ProgramProblem.kind,)
    rank = 10

    def too_large(self, problem: ProgramProblem) -> str:
        values = len(problem.model.values)
        return f"{values} values are too many" if values > MOST_VALUES else ""

    def draft(self, problem: ProgramProblem, request: Request) -> Draft:
        """A schedule, or the proof that there is none, or neither within the limits."""
        budget = UNBOUNDED_BYTES if request.budget is None else request.budget
        stop = _after(MOST_STATES, request)
        search = ExactSearch(problem.profile, budget)
        found = search.run(stop)
        bound = problem.base_cost + found.lower_bound
        if not _looks_at_all(problem, search):
            actions = found.schedule.actions if found.schedule else None
            return Draft(actions, limits=(f"{self.keyword}, which did not look at moves",))
        if found.schedule is None:
            limits = () if found.is_complete else (request.limit,)
            floor = _floor(problem, search) if found.is_complete else None
            return Draft(lower_bound=bound, limits=limits, floor=floor)
        schedule = _fitting(problem, found.schedule, budget, stop)
        return Draft(schedule.actions, lower_bound=bound)

    def smallest(self, problem: ProgramProblem, request: Request, floor: Floor | None) -> Draft:
        """Upwards from the floor, each time to the least budget at which something more fits."""
        least = floor
        most = STATES_FOR_SMALLEST if request.best_cost is None else STATES_BESIDE_A_PLAN
        stop = _after(most, request)
        while least is not None:
            search = ExactSearch(problem.profile, least.bytes)
            found = search.run(stop, any_cost=True)
            if found.schedule is not None:
                peak = problem.player.play(found.schedule).peak_bytes
                return Draft(floor=least, min_budget=peak)
            higher = _floor(problem, search)
            is_proof = found.is_complete and _looks_at_all(problem, search)
            if not is_proof or higher is None:
                break
            least = higher
        return Draft(floor=least)


def _looks_at_all(problem: ProgramProblem, search: ExactSearch) -> bool:
    """Whether what it does not find is not there: it looks at moves, or none are allowed."""
    return search.looks_at_moves or not problem.moving.host_bytes


def _fitting(
    problem: ProgramProblem, schedule: Schedule, budget: int, stop: Callable[[], bool]
) -> Schedule:
    """The schedule, or where constants that it computes from do not fit, which the search knows
    nothing of, one that leaves room for them.
    """
    found, room = schedule, budget
    for _ in range(MOST_SQUEEZES):
        over = problem.player.play(found).peak_bytes - budget
        if over <= 0:
            break
        room -= over
        closer = ExactSearch(problem.profile, room).run(stop).schedule
        if closer is None:
            break
        found = closer
    return found


def _floor(problem: ProgramProblem, search: ExactSearch) -> Floor | None:
    """What no schedule gets below, where a search found none: the least that did not fit."""
    blocked, profile = search.blocked, problem.profile
    if blocked is None:
        return None
    names = value_names(problem.graph)
    beside = blocked.peak_bytes - profile.bytes_of(blocked.resident)
    there = tuple(names[value] for value in blocked.resident)
    if blocked.step < 0:
        return Floor(blocked.peak_bytes, "the forward pass", there, beside)
    where = f"backward of {names[profile.steps[blocked.step]]}"
    if blocked.made is not None:
        name = names[blocked.made]
        how = f"bringing {name} back" if blocked.is_back else f"computing {name} again"
        where = f"{how} for {where}"
    return Floor(blocked.peak_bytes, where, there, beside)


def _after(most_states: int, request: Request) -> Callable[[], bool]:
    """Whether to stop: after so many states, or at the deadline."""
    looked_at = 0

    def stop() -> bool:
        nonlocal looked_at
        looked_at += ExactSearch.ASKS_AFTER
        return looked_at > most_states or request.deadline.passed

    return stop
