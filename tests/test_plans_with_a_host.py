"""Plans that may move values to the host: what fits only so, what is cheapest, never more than
without; and the command that asks for them.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli import Tensor
from ckptcli.checkpoint.planned import strategy_of
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.passes.run import run_pass
from ckptcli.planning.bounds import lower_bound_of
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.choice import check_feasible, choose
from ckptcli.planning.tape.exact import ExactSearch
from ckptcli.planning.tape.greedy import Greedy
from ckptcli.planning.tape.moving import Moving
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Simulator
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import same_bits, unwatched
from tests.simulated import FunctionWorkload, measured
from tests.test_budgets import TENSOR, N, by_kind
from tests.test_planned import NUMPY

EFFORT = 150_000
"""Of a greedy search: a third of a second."""


def rows_of_sums() -> FunctionWorkload:
    """Four layers, each the sine of the sums of a wide matrix: what backward needs is narrow, and
    computing it again needs the matrix, beside gradients that forward had not.
    """

    def program(h: Tensor, *rows: Tensor) -> Tensor:
        for row in rows:
            h = (h + row).sum_dim(1).sin()
        return h.sum()

    draws = np.random.default_rng(0)
    shapes = [(50, 1), *[(1, 50)] * 4]
    return FunctionWorkload([draws.normal(size=shape) for shape in shapes], program)


def test_a_budget_that_nothing_fits_without_a_host() -> None:
    """Proved by a complete search; with a host it runs, within the budget, bit for bit."""
    workload = rows_of_sums()
    workload.load(unwatched("none")).forward()
    graph = record(workload, NUMPY)
    alone = ProgramProblem(graph, with_workspace=False)
    budget = alone.profile.floor().peak_bytes + 64
    found = ExactSearch(alone.profile, budget).run(lambda: False)
    assert found.is_complete
    assert found.schedule is None
    moving = Moving(1200, 1)
    problem = ProgramProblem(graph, with_workspace=False, moving=moving)
    choice = choose(problem, budget, Simulator(graph).named())
    strategy = strategy_of(check_feasible(choice), "plan")
    assert choice.plan.proved_optimal
    assert (choice.plan.recomputed, choice.plan.host) == (2400, 1200), (
        "three values, there and back"
    )
    forward, _, backward, *_ = measured(workload, strategy)
    assert max(forward or 0, backward or 0) - graph.base_bytes == choice.plan.peak <= budget
    own = run_pass(workload, strategy, NUMPY).gradient_arrays()
    reference = run_pass(workload, parse_strategy("none"), NUMPY).gradient_arrays()
    assert same_bits(own.values(), reference.values())


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(24))
def test_the_greedy_search_is_close_to_the_exact_one(seed: int) -> None:
    """Neither costs more than without a host, both keep to it, and greedy is at most a tenth above
    the least cost.
    """
    draws = random.Random(seed)
    graph = record(SiluWorkload(draws.choice([3, 4]), N), NUMPY, True)
    moving = Moving(draws.choice([1, 2, 3, 20]) * TENSOR, draws.choice([0.1, 1, 10]) / TENSOR)
    problem = ProgramProblem(graph, by_kind, with_workspace=False, moving=moving)
    alone = ProgramProblem(graph, by_kind, with_workspace=False)
    budget = draws.randint(4, 7) * TENSOR + 64
    exact = ExactSearch(problem.profile, budget).run(lambda: False)
    assert exact.is_complete
    assert exact.schedule is not None
    least = problem.model.cost_of(exact.schedule)
    assert least == pytest.approx(exact.lower_bound)
    bound = lower_bound_of(problem, budget)
    assert bound is not None
    assert bound - problem.base_cost <= least + 1e-9
    greedy = Greedy(problem.player, budget, effort=EFFORT).run()
    without = Greedy(alone.player, budget, effort=EFFORT).run()
    assert greedy is not None
    assert least - 1e-9 <= greedy.cost <= 1.1 * least
    assert without is None or greedy.cost <= without.cost
    for schedule in (exact.schedule, greedy.schedule):
        played = problem.player.play(schedule)
        assert played.peak_bytes <= budget
        assert played.host_bytes <= moving.host_bytes


def test_the_bound_of_the_search_with_moves_leaves_no_cheaper_plan_out() -> None:
    class Unguided(ExactSearch):
        def _bound(self, state: Any) -> int:
            return 0

    for seed in range(6):
        draws = random.Random(seed)
        graph = record(SiluWorkload(2, 8), NUMPY, draws.random() < 0.5)
        costs = {node.id: draws.randint(1, 9) for node in graph.nodes}
        moving = Moving(draws.choice([256, 512]), draws.choice([0.001, 0.01]))
        problem = ProgramProblem(graph, lambda n, c=costs: c[n.id], False, moving)  # type: ignore[misc]
        for more in (0, 256, 600):
            budget = problem.profile.floor().peak_bytes + more
            guided, unguided = (
                kind(problem.profile, budget).run(lambda: False) for kind in (ExactSearch, Unguided)
            )
            assert (guided.schedule is None) == (unguided.schedule is None)
            assert guided.lower_bound == pytest.approx(unguided.lower_bound)


SMALL = ("-n", "16", "--layers", "4", "--consume-grads", "--budget", "6KiB")
HOST = ("--host-memory", "3KiB", "--transfer", "1")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return lambda *words: run_command(["plan", "-q", *SMALL, *words])


def test_a_plan_says_what_it_moves_and_takes_what_it_says(
    plan: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(*HOST, "--run", "--json", "--export", "plan.json") == 0
    found = json.loads(capsys.readouterr().out)
    moved = [action[1] for action in found["actions"] if action[0] == "to_host"]
    back = {action[1] for action in found["actions"] if action[0] == "from_host"}
    assert set(moved) == back
    assert moved
    assert found["host_memory"] == {
        "host_bytes": 3072,
        "peak_bytes": 1024 * len(moved),
        "byte_cost": 1,
    }
    run = found["measured"]
    assert (run["peak_bytes"], run["host_bytes"]) == (found["peak"], 1024 * len(moved))
    assert run["gradients_equal"]
    line = "moved to the host once made, back before the backward step"
    assert sum(line in reason for reason in found["reasons"]) == len(moved)
    words = ["run", "-q", "-n", "16", "--layers", "4", "-s", "none", "-s", "plan:plan.json"]
    assert run_command([*words, "--reps", "2", "--replay", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["strategies"]
    assert len({row["grad_sha256"] for row in rows}) == 1
    assert [row["offloaded_bytes"] for row in rows] == [0, 1024 * len(moved)] * 2


def test_a_check_repeats_a_plan_in_float64_and_sees_a_copy_that_is_spoilt(
    plan: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(*HOST, "--export", "plan.json") == 0
    words = ["check", "-n", "16", "--layers", "4", "-s", "plan:plan.json", "--json"]
    capsys.readouterr()
    assert run_command(words) == 0
    (found,) = json.loads(capsys.readouterr().out)["checks"]
    assert found["passed"]
    assert found["differences"]
    assert run_command([*words, "--perturb-replay", "host"]) == 5
    (spoilt,) = json.loads(capsys.readouterr().out)["checks"]
    assert not spoilt["passed"]
    assert spoilt["wrong_values"][0]["op"] == "matmul"
    for command in ("run", "check"):
        other = [command, "-n", "16", "--layers", "4", "--dtype", "float64", "-s", "plan:plan.json"]
        assert run_command(other) == 2
        assert "float32 in the plan" in capsys.readouterr().err


def test_the_screen_tells_of_the_host(plan: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(*HOST, "--run", "--width", "300") == 0
    screen = capsys.readouterr().out
    assert "of the forward pass computed again or moved, by tape-exact" in screen
    assert "on the host, 3.0 KiB allowed; a move costs 1 operation a byte, each way" in screen
    assert "1.0 KiB each way; rebuilding costs one matmul: 8,192 operations, " in screen
    assert "on the host 1.0 KiB (1024 bytes), as predicted" in screen


def test_a_rate_prices_moves_in_seconds(plan: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("--host-memory", "3KiB", "--transfer", "25GB/s", "--cost", "time", "--json") == 0
    assert json.loads(capsys.readouterr().out)["host_memory"]["byte_cost"] == 1 / 25e9


def test_plans_without_a_host_are_as_ever(plan: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["host_memory"] is None
    assert not {"to_host", "from_host"} & {action[0] for action in found["actions"]}


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("--host-memory", "3KiB"), "needs what a move costs", "add --transfer 100"),
        (("--host-memory", "x", "--transfer", "5"), "`x` is no size", "2GiB"),
        (("--host-memory", "0", "--transfer", "5"), "0 is no room", "leave it out"),
        (("--host-memory", "1MiB", "--transfer", "25GB/s"), "is a rate", "--cost time"),
        (
            ("--host-memory", "1MiB", "--transfer", "5", "--cost", "time"),
            "costs are seconds",
            "25GB/s",
        ),
        (("--host-memory", "1MiB", "--transfer", "-5"), "no price of a byte", "--transfer 100"),
        (("--host-memory", "1MiB", "--transfer", "nan"), "no price of a byte", "--transfer 100"),
    ],
)
def test_what_is_no_host_or_no_price_is_refused(
    plan: Any,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
    hint: str,
) -> None:
    assert plan(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert hint in error


def test_a_price_without_a_host_is_told(plan: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["plan", *SMALL, "--transfer", "5", "--json"]) == 0
    assert "--transfer has no effect without --host-memory" in capsys.readouterr().err


def test_a_rate_is_told_as_one_and_a_plan_that_does_not_fit_moves_nothing(
    plan: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    price = ("--cost", "time", "--transfer", "25GB/s", "--host-memory", "3KiB")
    assert plan("--budget", "1025", *price, "--width", "300") == 1
    screen = capsys.readouterr().out
    assert "within 1.0 KiB (1025 bytes): no plan was found" in screen
    assert "nothing on the host, 3.0 KiB allowed; a move goes at 25 GB/s, each way" in screen
    assert "at most nothing" not in screen
