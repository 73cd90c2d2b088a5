"""Budgets: floors, the exact search, greedy sets; no named strategy that fits is better."""

from __future__ import annotations

import random
from functools import cache

import pytest

from ckptcli.backends import open_backend
from ckptcli.checkpoint.planned import strategy_of
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import PlanError, UsageError
from ckptcli.passes.run import open_pass, run_pass
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.bound import least_again
from ckptcli.planning.tape.choice import Choice, check_feasible, choose
from ckptcli.planning.tape.cost_graph import CostGraph, CostNode
from ckptcli.planning.tape.drawing import draw
from ckptcli.planning.tape.exact import ExactSearch, ForwardCheck, State
from ckptcli.planning.tape.greedy import Greedy
from ckptcli.planning.tape.moving import Moving
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Simulator
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import same_bits
from tests.simulated import measured
from tests.test_planned_ops import random_program
from tests.test_predicted_programs import EXAMPLES, opened

NUMPY = open_backend("numpy")
N = 64
TENSOR = N * N * 4
A_FEW_BYTES = 64


def by_kind(node: CostNode) -> Number:
    """A matrix product costs 100, an element-wise op 1."""
    return 100 if node.op == "matmul" else 1


@cache
def silu_problem(consumes: bool) -> ProgramProblem:
    graph = record(SiluWorkload(8, N), NUMPY, consumes)
    return ProgramProblem(graph, by_kind, with_workspace=False)


@cache
def example(program: str) -> CostGraph:
    return record(opened(f"{EXAMPLES / program}"), NUMPY)


def extra(problem: ProgramProblem, choice: Choice) -> Number:
    assert choice.plan.cost is not None
    return choice.plan.cost - problem.base_cost


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("consumes", "tensors", "cost"),
    [(False, 12, 12), (False, 11, 13)]
    + [(True, *pair) for pair in ((11, 13), (10, 15), (9, 115), (8, 215), (7, 317))]
    + [(True, *pair) for pair in ((6, 422), (5, 728), (4, 2151))],
)
def test_the_exact_search_finds_the_cheapest_silu_plan(
    consumes: bool, tensors: int, cost: int
) -> None:
    problem = silu_problem(consumes)
    budget = tensors * TENSOR + A_FEW_BYTES
    found = ExactSearch(problem.profile, budget).run(lambda: False)
    assert found.schedule is not None
    computed = list(found.schedule.computations())
    assert sum(problem.model.costs[node] for node in computed) == cost == found.lower_bound
    assert problem.player.play(found.schedule).peak_bytes <= budget


class _Unguided(ExactSearch):
    """The same search without its bound: it looks at everything that is cheaper."""

    def _bound(self, state: State) -> Number:
        return 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_the_bound_of_the_exact_search_leaves_no_cheaper_plan_out(seed: int) -> None:
    draws = random.Random(seed)
    graph = record(SiluWorkload(draws.choice([2, 3]), 8), NUMPY, draws.random() < 0.5)
    costs = {node.id: draws.randint(1, 9) for node in graph.nodes}
    problem = ProgramProblem(graph, lambda node: costs[node.id], with_workspace=False)
    least = problem.profile.floor().peak_bytes
    for more in (0, 64, 256, 300, 600):
        found = ExactSearch(problem.profile, least + more).run(lambda: False)
        unguided = _Unguided(problem.profile, least + more).run(lambda: False)
        assert (found.schedule is None) == (unguided.schedule is None)
        if found.schedule is not None:
            assert found.lower_bound == unguided.lower_bound
            assert problem.player.play(found.schedule).peak_bytes <= least + more


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_said_without_a_search_holds(seed: int) -> None:
    """The bound on the cost, and the floor that the search upwards proves."""
    draws = random.Random(seed)
    graph = record(SiluWorkload(draws.choice([2, 3]), 8), NUMPY, draws.random() < 0.5)
    costs = {node.id: draws.randint(1, 9) for node in graph.nodes}
    problem = ProgramProblem(graph, lambda node: costs[node.id], with_workspace=seed % 2 == 0)
    least = problem.profile.floor().peak_bytes
    for more in (0, 64, 256, 300, 600):
        found = ExactSearch(problem.profile, least + more).run(lambda: False)
        if found.schedule is not None:
            assert least_again(problem.profile, least + more) <= found.lower_bound
    plan = choose(problem, least - 1, ()).plan
    assert plan.min_budget_proved
    assert plan.min_budget is not None
    for budget, is_enough in ((plan.min_budget - 1, False), (plan.min_budget, True)):
        found = _Unguided(problem.profile, budget).run(lambda: False)
        assert (found.schedule is not None) == is_enough


@pytest.mark.parametrize("byte_cost", [0.0, 0.02, 0.1])
def test_the_bound_knows_what_comes_back_from_the_host(byte_cost: float) -> None:
    graph = record(SiluWorkload(2, 8), NUMPY, True)
    moving = Moving(host_bytes=1 << 20, byte_cost=byte_cost)
    problem = ProgramProblem(graph, by_kind, with_workspace=False, moving=moving)
    least = problem.profile.floor().peak_bytes
    for more in (0, 64, 256, 512):
        found = ExactSearch(problem.profile, least + more).run(lambda: False)
        if found.schedule is not None:
            assert least_again(problem.profile, least + more) <= found.lower_bound


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", [seed for seed in range(24) if seed != 20])
def test_the_search_counts_a_forward_pass_as_it_is_played(seed: int) -> None:
    """What ops keep of leaves is there whatever is held. Of program 20 an op that leads to nothing
    keeps a value for a while, of which a bound need not know.
    """
    problem = ProgramProblem(record(random_program(seed), NUMPY), with_workspace=seed % 2 == 0)
    values = problem.model.values
    everything = draw(problem.model, values)
    forward = problem.player.play(everything).forward_bytes
    held = sum(1 << place for place, value in enumerate(values) if value in everything.held)
    check = ForwardCheck(problem.player, values)
    assert check.blame(held, forward) is None
    assert check.blame(held, forward - 1) is not None
    assert check.took_bytes == forward


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(18))
def test_no_floor_is_above_what_a_strategy_takes(seed: int) -> None:
    """A program's own regions may take less than schedules, which run without them."""
    graph = record(random_program(seed), NUMPY)
    problem, named = ProgramProblem(graph), Simulator(graph).named()
    least = min(strategy.peak_bytes for strategy in named)
    for budget in (least - 1, least, 2 * least):
        plan = choose(problem, budget, named).plan
        assert plan.feasible or budget < least
        assert plan.min_budget is not None
        assert plan.min_budget <= least
        assert plan.floor is None or plan.floor.bytes <= plan.min_budget
        if plan.cost is not None and plan.lower_bound is not None:
            assert plan.lower_bound <= plan.cost


def test_the_bound_of_silu_says_what_does_not_fit() -> None:
    """One product more for each tensor less."""
    problem = silu_problem(True)
    bounds = [least_again(problem.profile, t * TENSOR + A_FEW_BYTES) for t in range(12, 3, -1)]
    exact = (13, 13, 15, 115, 215, 317, 422, 728, 2151)
    assert all(bound <= cost for bound, cost in zip(bounds, exact))
    assert bounds == [11, 12, 13, 113, 213, 313, 413, 513, 613]


def test_what_sets_the_floor_of_an_example_is_found_upwards() -> None:
    """No step needs so much by itself, but what it needs has to come from somewhere."""
    problem = ProgramProblem(example("mlp.py:make"), flops_and_bytes, with_workspace=False)
    plan = choose(problem, problem.profile.floor().peak_bytes, ()).plan
    assert (plan.min_budget, plan.min_budget_proved) == (4_461_572, True)
    assert plan.floor is not None
    assert plan.floor.bytes == plan.min_budget
    assert plan.floor.where
    assert plan.floor.values
    assert not choose(problem, plan.min_budget - 1, ()).plan.feasible
    assert choose(problem, plan.min_budget, ()).plan.peak == plan.min_budget


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tensors", [11, 12])
def test_a_silu_plan_takes_what_it_says(tensors: int) -> None:
    problem, workload = silu_problem(False), SiluWorkload(8, N)
    choice = choose(problem, tensors * TENSOR + A_FEW_BYTES, ())
    assert choice.plan.proved_optimal
    strategy = strategy_of(check_feasible(choice), "plan")
    peaks = measured(workload, strategy)
    assert max(peaks[0] or 0, peaks[2] or 0) - problem.graph.base_bytes == choice.plan.peak


@pytest.mark.slow
def test_a_consumed_pass_takes_what_its_plan_says() -> None:
    from ckptcli.backends.ledger import Ledger

    problem, workload = silu_problem(True), SiluWorkload(8, N)
    for tensors in (10, 6, 4):
        choice = choose(problem, tensors * TENSOR + A_FEW_BYTES, ())
        ledger = Ledger()
        strategy = strategy_of(check_feasible(choice), "plan")
        pass_ = open_pass(workload, strategy, NUMPY, None, ledger)
        base = ledger.bytes_in_use
        ledger.start_phase()
        result = pass_.forward()
        result.root.backward(consume=lambda node_id, gradient: None)
        assert ledger.peak.live_bytes - base == choice.plan.peak


@pytest.mark.parametrize(("consumes", "least"), [(False, 11), (True, 4)])
def test_a_budget_below_the_floor_names_what_sets_it(consumes: bool, least: int) -> None:
    problem = silu_problem(consumes)
    choice = choose(problem, (least - 1) * TENSOR + A_FEW_BYTES, ())
    plan = choice.plan
    assert not plan.feasible
    assert plan.floor is not None
    assert least * TENSOR <= plan.floor.bytes <= least * TENSOR + A_FEW_BYTES
    assert plan.floor.where.startswith("backward of h of layer")
    assert [value[0] for value in plan.floor.values] == ["p", "s"]
    with pytest.raises(PlanError, match=r"fits in .*backward of h of layer"):
        check_feasible(choice)


@pytest.mark.slow
@pytest.mark.parametrize(("tensors", "most"), [(11, 13), (9, 115), (7, 330), (5, 950)])
def test_greedy_is_near_the_exact_search(tensors: int, most: int) -> None:
    found = Greedy(silu_problem(True).player, tensors * TENSOR + A_FEW_BYTES, effort=300_000).run()
    assert found is not None
    assert found.cost <= most


TRIAL = {
    "transformer.py:Model": {0.75: 0.03, 0.6: 0.04, 0.5: 0.10, 0.4: 0.33, 0.3: 0.79},
    "mlp.py:make": {0.75: 0.004, 0.6: 0.51, 0.5: 1.67, 0.4: 2.5},
    "recurrent.py:make": {0.75: 0.05, 0.5: 0.38, 0.4: 1.07, 0.2: 4.1},
}
"""Part of `none`'s peak -> the most that a plan may cost, in forward passes."""


def flops_and_bytes(node: CostNode) -> Number:
    return node.flops + node.moved_bytes / 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "part"), [(program, part) for program in TRIAL for part in list(TRIAL[program])[1:]]
)
def test_an_example_is_planned_run_and_within_its_budget(program: str, part: float) -> None:
    workload = opened(f"{EXAMPLES / program}")
    graph = example(program)
    problem = ProgramProblem(graph, flops_and_bytes, with_workspace=False)
    simulator = Simulator(graph)
    none = simulator.predict(parse_strategy("none")).peak_bytes - graph.base_bytes
    choice = choose(problem, int(none * part), simulator.named())
    assert extra(problem, choice) <= TRIAL[program][part] * problem.base_cost * 1.005
    for named in simulator.named():
        if named.ledger_bytes <= int(none * part):
            assert choice.plan.cost is not None
            assert choice.plan.cost <= named.cost(problem)
    strategy = strategy_of(check_feasible(choice), "plan")
    peaks = measured(workload, strategy)
    assert max(peaks[0] or 0, peaks[2] or 0) - graph.base_bytes == choice.plan.peak
    expected = run_pass(workload, parse_strategy("none"), NUMPY).gradient_arrays()
    assert same_bits(
        run_pass(workload, strategy, NUMPY).gradient_arrays().values(), expected.values()
    )


@pytest.mark.slow
def test_a_chain_without_layers_is_cut_where_little_crosses() -> None:
    """The steps of a recurrent network are in no loop that the engine knows of."""
    graph = example("recurrent.py:marked")
    assert not graph.loops
    problem = ProgramProblem(graph)
    found = Greedy(problem.player, 700_000).run()
    assert found is not None
    assert found.cost <= 0.9 * problem.base_cost


def test_a_plan_is_never_worse_than_a_named_strategy_that_fits() -> None:
    graph = record(SiluWorkload(6, 16), NUMPY)
    problem, simulator = ProgramProblem(graph), Simulator(graph)
    for named in simulator.named():
        plan = choose(problem, named.peak_bytes, simulator.named()).plan
        assert plan.feasible
        assert plan.cost is not None
        assert plan.cost <= named.cost(problem)


def test_a_smaller_budget_never_costs_less_nor_peaks_higher_than_allowed() -> None:
    problem = ProgramProblem(record(SiluWorkload(5, 16), NUMPY))
    costs: list[Number] = []
    for budget in range(30_000, 12_000, -2_000):
        plan = choose(problem, budget, ()).plan
        if plan.feasible:
            assert plan.peak is not None
            assert plan.cost is not None
            assert plan.peak <= budget
            costs.append(plan.cost)
    assert len(costs) > 3
    assert costs == sorted(costs)


def test_a_budget_strategy_plans_the_same_every_time() -> None:
    workload = SiluWorkload(4, 16)
    schedules = [
        open_pass(workload, parse_strategy("budget:12KiB"), NUMPY).strategy.schedule  # type: ignore[attr-defined]
        for _ in range(2)
    ]
    assert schedules[0] == schedules[1]


def test_a_budget_that_nothing_fits_in_says_which_would_do() -> None:
    with pytest.raises(PlanError, match=r"no plan of .* fits in 1.0 KiB") as raised:
        open_pass(SiluWorkload(4, 16), parse_strategy("budget:1KiB"), NUMPY)
    assert raised.value.hint is not None
    least = int("".join(c for c in raised.value.hint if c.isdigit()))
    open_pass(SiluWorkload(4, 16), parse_strategy(f"budget:{least}"), NUMPY)


@pytest.mark.parametrize("text", ["budget", "budget:much", "plan", "plan:", "plan:none.json"])
def test_a_strategy_of_a_plan_says_what_it_takes(text: str) -> None:
    with pytest.raises(UsageError):
        parse_strategy(text)


def test_the_reasons_name_each_held_value() -> None:
    choice = choose(silu_problem(False), 12 * TENSOR + A_FEW_BYTES, ())
    assert choice.tape is not None
    assert choice.tape.schedule is not None
    reasons = choice.reasons()
    assert len(reasons) == len(choice.tape.schedule.held) + 1
    assert reasons[0].startswith("p of layer 0 (16.0 KiB): needed by the backward step of h of")
