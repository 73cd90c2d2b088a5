"""Segments and binomial schedules of chains: what they are said to take is what playing gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.planning.binomial import advances
from ckptcli.planning.chain_groups import grouped, ungrouped
from ckptcli.planning.chain_segments import Segments, schedule
from ckptcli.planning.play.base import play
from ckptcli.planning.problems.chain import ChainProblem
from tests.planning_kit import planned, problem

SEGMENTED = ("chen", "chen-longer-first", "chain-revolve")


def equal(stages: int) -> ChainProblem:
    """Stages that are alike and save their output alone."""
    ones = [1] * stages
    found: ChainProblem = problem("chain", uf=ones, ub=ones, A=[1, *ones], B=ones)
    return found


@st.composite
def chains(draw: st.DrawFn) -> ChainProblem:
    count = draw(st.integers(1, 7))

    def each(length: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(0, high), min_size=length, max_size=length))

    found: ChainProblem = problem(
        "chain",
        uf=each(count, 5),
        ub=each(count, 5),
        A=each(count + 1, 5),
        B=each(count, 8),
        D=each(count + 1, 4),
        of=each(count, 2),
        ob=each(count, 2),
    )
    return found


@given(of=chains())
@settings(max_examples=50, deadline=None)
def test_segments_take_what_is_counted(of: ChainProblem) -> None:
    segments = Segments(of)
    for count in range(1, of.stages + 1):
        for ends in (segments.even(count), segments.even_bytes(count)):
            played = play(of, schedule(of, ends))
            assert (played.peak, played.cost - of.base_cost) == (
                segments.peak(ends),
                segments.cost(ends),
            )


@given(of=chains(), cuts=st.sets(st.integers(1, 6)), budget=st.integers(3, 60))
@settings(max_examples=50, deadline=None)
def test_a_plan_of_groups_takes_no_more_of_their_stages(
    of: ChainProblem, cuts: set[int], budget: int
) -> None:
    ends = [*sorted(cut for cut in cuts if cut < of.stages), of.stages]
    groups = grouped(of, ends)
    plan = planned(groups, budget)
    if plan.feasible:
        assert plan.actions is not None
        played = play(of, ungrouped(plan.actions(), ends))
        assert played.cost == plan.cost
        assert played.peak <= budget


@given(of=chains(), budget=st.integers(3, 60))
@settings(max_examples=50, deadline=None)
def test_no_planner_leaves_the_budget(of: ChainProblem, budget: int) -> None:
    exact = planned(of, budget, "exact-chain")
    for name in SEGMENTED:
        plan = planned(of, budget, name)
        if plan.feasible:
            assert exact.cost is not None
            assert plan.cost is not None
            assert plan.cost >= exact.cost


@pytest.mark.parametrize("budget", [18, 20, 30])
def test_longer_first_makes_less_again(budget: int) -> None:
    even, longer = (planned(equal(64), budget, name).recomputed for name in SEGMENTED[:2])
    assert even is not None
    assert longer is not None
    assert longer <= even


def test_longer_first_fits_where_equal_segments_do_not() -> None:
    """A budget of 14 for 64 stages: gradients and a live tensor take 3 of it."""
    assert not planned(equal(64), 14, "chen").feasible
    assert planned(equal(64), 14, "chen-longer-first").recomputed == 62


def test_a_binomial_chain_advances_as_steps_do() -> None:
    """A budget of 13 has 9 slots: a live tensor, an abar and two gradients take 4."""
    plan = planned(equal(64), 13, "chain-revolve")
    assert plan.recomputed == advances(64, 9)


@pytest.mark.parametrize("stages", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_the_smallest_budget_of_a_longer_chain_is_found(stages: int) -> None:
    """Of equal stages: a_0, a_{i-1}, abar_i, d_i and d_{i-1}; of groups more."""
    of = equal(stages)
    plan = planned(of, 4)
    assert not plan.feasible
    assert plan.floor is not None
    assert plan.floor.bytes == 5
    assert plan.min_budget is not None
    assert planned(of, plan.min_budget).feasible
    assert stages > 80 or plan.min_budget == 5


@pytest.mark.slow
def test_a_hundred_thousand_stages() -> None:
    plan = planned(equal(100_000), 3_000, limit_s=5.0)
    assert plan.recomputed is not None
    assert plan.recomputed < 100_000
