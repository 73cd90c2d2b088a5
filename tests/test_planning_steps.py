"""Planning of equal steps and of items, against recorded tables and every schedule there is."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.errors import PlanError, UsageError
from ckptcli.planning.actions import Action
from ckptcli.planning.binomial import advances
from ckptcli.planning.making import make_plan, written
from ckptcli.planning.planners.base import Request
from ckptcli.planning.planners.revolve import ACTIONS_A_STEP, schedule
from ckptcli.planning.play.steps import play
from ckptcli.planning.problems.knapsack import KnapsackProblem
from ckptcli.planning.problems.steps import StepsProblem
from tests.planning_kit import planned, recorded

SLOTS = range(1, 9)
MIXED = {
    4: (9, 6, 4, 4, 4, 4, 4, 4),
    6: (20, 11, 9, 8, 6, 6, 6, 6),
    8: (35, 18, 14, 12, 11, 10, 8, 8),
    10: (54, 26, 19, 17, 15, 14, 13, 12),
    16: (135, 56, 40, 33, 29, 27, 26, 24),
    32: (527, 164, 110, 87, 77, 68, 61, 59),
    64: (2079, 473, 297, 229, 195, 172, 160, 149),
}
"""Evaluations, taping included, of n steps with 1 to 8 slots."""

DISK = {
    (4, 1): (10, 10, 10),
    (4, 2): (8, 8, 8),
    (6, 1): (21, 19, 19),
    (6, 2): (14, 14, 14),
    (8, 1): (36, 28, 28),
    (8, 2): (22, 22, 22),
}
"""Advances, reversals, writes and reads at 2 each, of n steps and slots with 0 to 2 on disk."""


def test_revolve_is_the_recorded_table() -> None:
    for key, cost in recorded("plan_revolve")["t"].items():
        n, slots = map(int, key.split(","))
        assert advances(n, slots) == cost, key


@pytest.mark.parametrize("n", [1, 2, 3, 9, 34, pytest.param(128, marks=pytest.mark.slow)])
def test_revolves_schedule_costs_what_the_closed_form_says(n: int) -> None:
    for slots in range(1, 17):
        actions = list(schedule(n, slots))
        played = play(StepsProblem(n), actions)
        assert played.cost == recorded("plan_revolve")["t"][f"{n},{slots}"]
        assert played.peak <= slots
        assert len(actions) <= ACTIONS_A_STEP * n


def test_a_million_steps_take_no_table() -> None:
    for slots, cost in {1: 499_999_500_000, 2: 941_809_245, 10: 11_647_922}.items():
        plan = make_plan(StepsProblem(1_000_000), Request(slots))
        assert (plan.cost, plan.proved_optimal) == (cost, True)


def test_a_schedule_too_long_to_play_is_played_as_it_is_written() -> None:
    plan = make_plan(StepsProblem(30_000), Request(9))
    assert sum(1 for _ in written(plan)) > 100_000
    with pytest.raises(PlanError, match="not 1 with"):
        list(written(replace(plan, cost=1)))


@pytest.mark.parametrize("n", MIXED)
def test_mixed_is_the_recorded_table(n: int) -> None:
    found = [planned(StepsProblem(n), slots, "mixed").cost for slots in SLOTS]
    assert [int(cost or 0) + n for cost in found] == list(MIXED[n])


@pytest.mark.slow
def test_mixed_of_a_thousand_steps() -> None:
    slots = {5: 6828, 10: 3921, 20: 2823, 40: 2142, 60: 1958, 80: 1932}
    for s, evaluations in slots.items():
        assert planned(StepsProblem(1000), s, "mixed").cost == evaluations - 1000


@pytest.mark.parametrize(("n", "slots"), DISK)
def test_disk_is_the_recorded_table(n: int, slots: int) -> None:
    found = [planned(StepsProblem(n, disk, 2, 2), slots, "hrevolve") for disk in range(3)]
    assert [int(plan.cost or 0) + n for plan in found] == list(DISK[n, slots])


def test_auto_takes_the_disk_where_there_is_one() -> None:
    assert planned(StepsProblem(8), 1).planner == "revolve"
    plan = planned(StepsProblem(8, 1, 2, 2), 1)
    assert (plan.planner, plan.cost, plan.proved_optimal) == ("hrevolve", 20, True)


@pytest.mark.parametrize("planner", ["mixed", "hrevolve"])
def test_a_table_that_would_be_too_large_is_refused(planner: str) -> None:
    with pytest.raises(UsageError, match=f"planner `{planner}`"):
        planned(StepsProblem(100_000, 10), 1000, planner)


State = tuple[int, int | None, frozenset[int], frozenset[int], frozenset[int]]
"""Steps that are left; the live state; states in slots and on disk; tapes."""


def after(
    state: State, slots: int, problem: StepsProblem, tapes: bool
) -> Iterator[tuple[int, State]]:
    """Every state one action away, with its cost."""
    left, live, stored, disk, taped = state
    room = slots - len(stored) - len(taped)
    if live is not None:
        if live + 1 < left:
            yield 1, (left, live + 1, stored, disk, taped)
            if tapes and room > 0:
                yield 1, (left, live + 1, stored, disk, taped | {live + 1})
        if live + 1 == left:
            yield 1, (left - 1, live, stored, disk, taped)
        if room > 0:
            yield 0, (left, live, stored | {live}, disk, taped)
        if len(disk) < problem.disk:
            yield int(problem.write_cost), (left, live, stored, disk | {live}, taped)
    if left in taped:
        yield 0, (left - 1, live, stored, disk, taped - {left})
    for one in stored:
        yield 0, (left, one, stored, disk, taped)
        yield 0, (left, live, stored - {one}, disk, taped)
    for one in disk:
        yield int(problem.read_cost), (left, one, stored, disk, taped)
        yield 0, (left, live, stored, disk - {one}, taped)


def searched(problem: StepsProblem, slots: int, tapes: bool) -> int:
    """The least cost of any schedule, by looking at all, without the n evaluations of reversals."""
    start: State = (problem.n, 0, frozenset(), frozenset(), frozenset())
    known: dict[State, int] = {start: 0}
    heap = [(0, 0, start)]
    while heap:
        cost, _, state = heapq.heappop(heap)
        if not state[0]:
            return cost - problem.n
        if cost > known[state]:
            continue
        for added, then in after(state, slots, problem, tapes):
            if cost + added < known.get(then, 1 << 60):
                known[then] = cost + added
                heapq.heappush(heap, (cost + added, len(known), then))
    raise AssertionError("no schedule")


@pytest.mark.parametrize("n", [2, 3, 4, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("slots", [1, 2])
def test_no_schedule_costs_less(n: int, slots: int) -> None:
    assert searched(StepsProblem(n), slots, False) == advances(n, slots)
    assert searched(StepsProblem(n), slots, True) == planned(StepsProblem(n), slots, "mixed").cost
    for disk, write, read in ((1, 2, 2), (2, 1, 1), (1, 5, 1)):
        problem = StepsProblem(n, disk, write, read)
        assert searched(problem, slots, False) == planned(problem, slots, "hrevolve").cost


def test_what_the_rules_exclude_is_refused() -> None:
    wrong: dict[tuple[Action, ...], str] = {
        (("reverse", 2),): "the live state is 0",
        (("advance", 0, 3),): "step 2 is reversed next",
        (("restore", 1),): "it is not stored there",
        (("store", 0, "tape"),): "no such action",
        (("jump", 0),): "no such action",
        (("advance", 0, 1), ("reverse", 2)): "step 1 is not reversed",
    }
    for actions, why in wrong.items():
        with pytest.raises(PlanError, match=why):
            play(StepsProblem(2), actions)


# Items.


def test_the_knapsack_is_the_recorded_table() -> None:
    items = KnapsackProblem((4, 4, 2, 2, 1, 3), (20, 10, 1, 2, 1, 9))
    found = [planned(items, budget).recomputed for budget in range(17)]
    assert found == [43, 42, 41, 34, 23, 22, 21, 14, 13, 12, 11, 4, 3, 2, 1, 1, 0]
    assert planned(KnapsackProblem((5, 4, 4), (10, 7, 7)), 8).recomputed == 10


@given(
    items=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8),
    budget=st.integers(0, 40),
    scale=st.sampled_from([1, 2**70]),
)
@settings(max_examples=60, deadline=None)
def test_no_choice_of_items_spares_more(
    items: list[tuple[int, int]], budget: int, scale: int
) -> None:
    memory, runtime = ([item[k] for item in items] for k in (0, 1))
    choices = range(2 ** len(items))
    spared = max(
        sum(r for i, r in enumerate(runtime) if choice >> i & 1)
        for choice in choices
        if sum(m for i, m in enumerate(memory) if choice >> i & 1) <= budget
    )
    problem = KnapsackProblem(tuple(m * scale for m in memory), tuple(runtime))
    plan = planned(problem, budget * scale)
    assert (plan.recomputed, plan.proved_optimal) == (sum(runtime) - spared, True)
