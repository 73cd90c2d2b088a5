"""Planning of dags and chains against recorded optima and search through every schedule."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.errors import PlanError
from ckptcli.planning.bounds import lower_bound_of
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.planners.min_cut import gradients
from ckptcli.planning.play.base import play
from ckptcli.planning.problems.chain import ChainProblem
from ckptcli.planning.problems.dag import DagProblem
from tests.planning_kit import PRODUCT, planned, problem, recorded, silu

CONSUMED = {10: 2463, 9: 2563, 8: 2663, 7: 2767, 6: 2873, 5: 3281, 4: 5212}
"""Peak -> least cost of 8 layers of which each weight's gradient is let go at once."""


@pytest.mark.parametrize("name", recorded("plan_dags"))
def test_the_recorded_dags_are_planned_exactly(name: str) -> None:
    values = recorded("plan_dags")[name]
    table = values["table_M_exact_fixedorder_checkmate"]
    least = next(budget for budget, cost, *_ in table if cost is not None)
    for budget, cost, *_ in table:
        plan = planned(problem("dag", **values), budget)
        assert (plan.cost, plan.proved_optimal) == (cost, cost is not None)
        assert (plan.min_budget, plan.min_budget_proved) == (least, True)


@pytest.mark.parametrize("name", recorded("plan_chains"))
def test_the_recorded_chains_are_planned_exactly(name: str) -> None:
    values = recorded("plan_chains")[name]
    least = next(budget for budget, cost, *_ in values["table"] if cost is not None)
    for budget, cost, persistent, _ in values["table"]:
        plan = planned(problem("chain", **values), budget)
        assert (plan.cost, plan.proved_optimal) == (cost, cost is not None)
        if cost is None:
            assert (plan.min_budget, plan.min_budget_proved) == (least, True)
        elif persistent is not None:
            repaired = planned(problem("chain", **values), budget, "chain-dp").cost
            assert repaired is not None
            assert cost <= repaired <= persistent


def test_the_program_repairs_what_holding_alone_cannot_do() -> None:
    values = recorded("plan_chains")["C5 bottleneck"]
    assert planned(problem("chain", **values), 23, "chain-dp").cost == 45


# The silu network of 8 layers: 72 nodes, 2349 if nothing is computed twice.


def test_everything_once() -> None:
    network = silu(8, retained=True)
    assert (len(network.nodes), network.base_cost) == (72, 2349)
    assert planned(network, 25).cost == 2349


@pytest.mark.parametrize(("budget", "cost"), [(12, 2362), (11, 2363)])
def test_silu_with_gradients_that_stay(budget: int, cost: int) -> None:
    assert planned(silu(8, retained=True), budget).cost == cost


def test_what_silu_cannot_go_below_is_named() -> None:
    plan = planned(silu(8, retained=True), 10)
    assert (plan.feasible, plan.min_budget, plan.min_budget_proved) == (False, 11, True)
    assert plan.floor is not None
    assert plan.floor.where == "compute c1"
    assert {"s1", "d1", "c1", *(f"w{i}" for i in range(2, 9))} < set(plan.floor.values)


@pytest.mark.parametrize(
    ("budget", "cost"),
    [
        pytest.param(b, c, marks=[pytest.mark.slow] if 4 < b < 10 else [])
        for b, c in CONSUMED.items()
    ],
)
def test_silu_with_gradients_that_are_consumed(budget: int, cost: int) -> None:
    plan = planned(silu(8, retained=False), budget)
    assert (plan.cost, plan.proved_optimal) == (cost, True)


def test_silu_does_not_go_below_four() -> None:
    plan = planned(silu(8, retained=False), 3)
    assert (plan.feasible, plan.min_budget, plan.min_budget_proved) == (False, 4, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fused", "retained"), [(False, True), (False, False), (True, True), (True, False)]
)
def test_silu_is_as_cheap_as_recorded_at_every_peak(fused: bool, retained: bool) -> None:
    """Of every variant whose rules a dag has: results are not written over operands."""
    name = f"{'F' if fused else 'U'}_out_{'retain' if retained else 'consume'}"
    least: dict[int, int] = {}
    for peak, _, products, others in recorded("plan_silu")["variants"][name]["all_P_H_Rm_Re"]:
        cost = PRODUCT * products + others
        least[peak] = min(cost, least.get(peak, cost))
    network = silu(8, retained=retained, fused=fused)
    for peak in sorted(least)[:: 1 if fused else 3]:
        if not fused and not retained and peak <= max(CONSUMED):
            continue  # each a case of its own
        plan = planned(network, peak)
        assert plan.recomputed == min(cost for p, cost in least.items() if p <= peak), peak
    assert not planned(network, min(least) - 1).feasible


@st.composite
def dags(draw: st.DrawFn) -> DagProblem:
    count = draw(st.integers(2, 6))
    nodes = []
    for v in range(count):
        parents = draw(st.lists(st.integers(0, v - 1), max_size=2, unique=True)) if v else []
        cost, size = draw(st.integers(0, 9)), draw(st.integers(0, 4))
        work = draw(st.integers(0, 2))
        nodes.append([f"n{v}", cost, size, [f"n{p}" for p in parents], work])
    names = [f"n{v}" for v in range(count)]
    goals = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    keep = draw(st.lists(st.sampled_from(goals), max_size=1))
    tail = names[draw(st.integers(0, count)) :]  # as gradients are
    once = draw(st.one_of(st.just(tail), st.lists(st.sampled_from(names), max_size=4, unique=True)))
    found: DagProblem = problem("dag", nodes=nodes, goals=goals, keep=keep, once=once)
    return found


def dags_of_a_forward_part() -> st.SearchStrategy[DagProblem]:
    """Those in which no node that is computed once leads to others of the kind alone."""
    return dags().filter(lambda of: of.once <= of.goals or not gradients(DagView(of)))


# Graphs of any size.


@pytest.mark.parametrize(("budget", "above"), [(10, 1), (9, 1), (8, 1), (7, 2), (6, 1), (5, 1)])
def test_the_greedy_is_near_the_optimum_of_silu(budget: int, above: int) -> None:
    cost = planned(silu(8, retained=False), budget, "greedy").cost
    assert cost is not None
    assert CONSUMED[budget] <= cost <= CONSUMED[budget] + above


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "extra"), [(300, 35), (114, 220), (40, 7700), (20, 9900)])
def test_a_thousand_nodes(budget: int, extra: int) -> None:
    """From 113 on no product is computed again; at a fifth of it one forward pass is enough."""
    plan = planned(silu(111, retained=False), budget)
    assert plan.recomputed is not None
    assert plan.recomputed <= extra
    assert (plan.min_budget, plan.min_budget_proved) == (4, True)


@pytest.mark.slow
def test_a_long_chain_costs_one_forward_more() -> None:
    """At a budget of twice the square root, as segments do."""
    count, names = 5_000, range(5_000)
    forward = [[f"f{i}", 1, 1, [f"f{i - 1}"] if i else []] for i in names]
    backward = [
        [f"g{i}", 2, 1, [*([f"g{i + 1}"] if i < count - 1 else []), f"f{i}"]]
        for i in reversed(names)
    ]
    of = problem(
        "dag", nodes=forward + backward, goals=["g0"], once=[str(node[0]) for node in backward]
    )
    plan = planned(of, 145)
    assert plan.recomputed is not None
    assert plan.recomputed <= count


@pytest.mark.parametrize(
    ("count", "budget", "least", "most"), [(16, 8, 41, 45), (64, 16, 179, 246), (64, 66, 128, 128)]
)
def test_eviction_at_run_time_is_in_its_range(
    count: int, budget: int, least: int, most: int
) -> None:
    """A linear net, its input resident throughout; the range of three published rules."""
    nodes = [["f0", 0, 1, []]]
    nodes += [[f"f{i}", 1, 1, [f"f{i - 1}"]] for i in range(1, count + 1)]
    for i in range(count, 0, -1):
        after = [f"g{i + 1}"] if i < count else []
        nodes.append([f"g{i}", 1, 1, [*after, f"f{i}", f"f{i - 1}"]])
    once = [f"g{i}" for i in range(1, count + 1)]
    of = problem("dag", nodes=nodes, goals=["g1", "f0"], keep=["f0"], once=once)
    cost = planned(of, budget, "dtr").cost
    assert cost is not None
    assert least * 0.9 <= cost <= most * 1.1


# A least cut of the forward part.


def test_the_least_that_silu_saves_is_its_products() -> None:
    plan = planned(silu(8, retained=True), None, "min-cut")
    assert plan.saved is not None
    assert set(plan.saved) == {f"m{i}" for i in range(1, 9)}
    assert plan.recomputed == 15


def forward_part(nodes: list[list[Any]], wanted: list[str], once: list[str]) -> set[str]:
    """What is saved of a forward part, with the parts of `nodes` as name, size, parents."""
    listed = [[name, 1, size, parents] for name, size, parents in nodes]
    plan = planned(problem("dag", nodes=listed, goals=wanted, once=once), None, "min-cut")
    return set(plan.saved or ())


def test_the_recorded_cuts() -> None:
    cast = [["m", 4, []], ["c", 2, ["m"]], ["r", 2, ["c"]]]
    assert forward_part(cast, ["c", "r"], ["m"]) == {"c"}
    for size, saved in ((3, {"a"}), (5, {"b", "c"})):
        fan = [["a", size, []], ["b", 2, ["a"]], ["c", 2, ["a"]], ["d", 2, ["c"]]]
        assert forward_part(fan, ["b", "c", "d"], ["a"]) == saved
    dropout = [["m", 4, []], ["k", 1, []], ["d", 4, ["m", "k"]], ["n", 4, ["d"]]]
    found = forward_part(dropout, ["d", "k", "n"], ["m", "k", "n"])
    assert found in ({"m", "k", "n"}, {"k", "d", "n"})


@given(of=dags_of_a_forward_part())
@settings(max_examples=60, deadline=None)
def test_no_set_of_saved_values_is_smaller(of: DagProblem) -> None:
    """Over every set from which the goals can be computed again."""
    count = len(of.nodes)
    plan = planned(of, None, "min-cut")
    least = None
    for bits in range(2**count):
        saved = {v for v in range(count) if bits >> v & 1}
        missing = set(of.goals) - saved
        todo = list(missing)
        while todo:
            for parent in of.nodes[todo.pop()].parents:
                if parent not in saved and parent not in missing:
                    missing.add(parent)
                    todo.append(parent)
        if not missing & of.once:
            size = sum(of.nodes[v].size for v in saved)
            least = size if least is None else min(least, size)
    sizes = {node.name: node.size for node in of.nodes}
    assert plan.saved is not None
    assert sum(sizes[name] for name in plan.saved) == least


# Every schedule of small problems.


def searched(of: DagProblem, budget: int) -> int | None:
    """The least cost over all sets of resident values, by their names."""
    start = (frozenset[int](), frozenset[int]())
    known: dict[Any, int] = {start: 0}
    heap: list[Any] = [(0, 0, start)]
    while heap:
        cost, _, (done, resident) = heapq.heappop(heap)
        if of.goals <= done:
            return int(cost)
        if cost > known[done, resident]:
            continue
        live = sum(of.nodes[v].size for v in resident)
        then = [(0, (done, resident - {v})) for v in resident - of.keep]
        for v, node in enumerate(of.nodes):
            is_open = v not in resident and not (v in of.once and v in done)
            fits = live + node.size + node.workspace <= budget
            if is_open and fits and resident.issuperset(node.parents):
                then.append((int(node.cost), (done | {v}, resident | {v})))
        for added, state in then:
            if cost + added < known.get(state, 1 << 60):
                known[state] = cost + added
                heapq.heappush(heap, (cost + added, len(known), state))
    return None


@given(of=dags(), budget=st.integers(1, 16))
@settings(max_examples=80, deadline=None)
def test_no_schedule_of_a_dag_costs_less(of: DagProblem, budget: int) -> None:
    plan = planned(of, budget)
    cost = searched(of, budget)
    assert (plan.feasible, plan.cost) == (cost is not None, cost)
    assert plan.proved_optimal == (cost is not None)
    least = next(b for b in range(100) if searched(of, b) is not None)
    if cost is None:
        assert (plan.min_budget, plan.min_budget_proved) == (least, True)
    assert plan.floor is None or plan.floor.bytes <= least


@given(of=dags(), budget=st.integers(1, 16))
@settings(max_examples=80, deadline=None)
def test_the_bound_that_takes_no_search_holds(of: DagProblem, budget: int) -> None:
    cost, bound = searched(of, budget), lower_bound_of(of, budget)
    if cost is not None:
        assert bound is not None
        assert of.base_cost <= bound <= cost


def test_a_plan_that_is_not_proved_has_a_gap() -> None:
    """Gradients that stay leave no room for products, in any order."""
    network = silu(60, retained=False)
    plan = planned(network, 40, "greedy")
    assert (plan.proved_optimal, plan.lower_bound) == (False, lower_bound_of(network, 40))
    assert plan.cost is not None
    assert plan.lower_bound is not None
    assert plan.gap == plan.cost - plan.lower_bound > 0
    assert plan.lower_bound >= network.base_cost + 18 * PRODUCT
    assert planned(network, None).gap == 0


@st.composite
def chains(draw: st.DrawFn) -> ChainProblem:
    count = draw(st.integers(1, 4))

    def each(length: int, low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=length, max_size=length))

    found: ChainProblem = problem(
        "chain",
        uf=each(count, 0, 5),
        ub=each(count, 0, 5),
        A=each(count + 1, 0, 4),
        B=each(count, 0, 6),
        D=each(count + 1, 0, 4),
        of=each(count, 0, 2),
        ob=each(count, 0, 2),
    )
    return found


@given(of=chains(), budget=st.integers(1, 24))
@settings(max_examples=60, deadline=None)
def test_a_chain_is_never_planned_above_holding_nor_below_the_bound(
    of: ChainProblem, budget: int
) -> None:
    exact, program = planned(of, budget, "exact-chain"), planned(of, budget, "chain-dp")
    if program.cost is not None:
        assert exact.cost is not None
        assert exact.cost <= program.cost
    assert exact.floor is None or exact.min_budget is None or exact.floor.bytes <= exact.min_budget
    assert planned(of, 10**9).cost == of.base_cost


def test_what_the_rules_exclude_is_refused() -> None:
    of = problem("dag", nodes=[["a", 1, 1, []], ["b", 1, 1, ["a"]]], goals=["b"], keep=["b"])
    for actions, why in (
        ([("compute", "b")], "a is not resident"),
        ([("compute", "a"), ("compute", "a")], "it is resident"),
        ([("free", "a")], "it is not resident"),
        ([("compute", "a"), ("compute", "b"), ("free", "b")], "it must be kept"),
        ([("compute", "c")], "no such node"),
        ([("fly", "a")], "no such action"),
        ([("compute", "a")], "b is not computed"),
    ):
        with pytest.raises(PlanError, match=why):
            play(of, actions)
    chain = problem("chain", uf=[1, 1], ub=[1, 1], A=[1, 1, 0], B=[1, 0])
    for actions, why in (
        ([("forward", 2)], "neither a1 nor abar1 is resident"),
        ([("forward", 3)], "no such stage"),
        ([("forward", 1), ("backward", 2)], "abar2 is not resident"),
        ([("forward_all", 1), ("backward", 1)], "the gradient at hand is d2"),
        ([("free", "a1")], "it is not resident"),
        ([("forward", 1)], "stage 2 is not reversed"),
        ([("jump", 1)], "no such action"),
    ):
        with pytest.raises(PlanError, match=why):
            play(chain, actions)
