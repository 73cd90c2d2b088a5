"""Whole-graph search and its bound: against every schedule of small problems; without the extra."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.cli.main import run_command
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.planners.base import Deadline
from ckptcli.planning.planners.registry import planners_for, registry
from ckptcli.planning.problems.dag import DagProblem
from ckptcli.planning.tape.exact import ExactSearch
from ckptcli.planning.whole import dag_relaxation, tape_relaxation
from ckptcli.planning.whole.linear import Relaxation
from ckptcli.planning.whole.solvers import interruptible
from ckptcli.planning.whole.whole_units import LARGEST, units_for
from tests.planning_kit import planned, problem, recorded, silu
from tests.test_budgets import A_FEW_BYTES, TENSOR, silu_problem
from tests.test_planning_dags import dags, searched

DAG = {"kind": "dag", "nodes": [["a", 1, 1, []], ["b", 2, 1, ["a"]]], "goals": ["b"]}


def solvers() -> None:
    """Skip where the extra is not installed."""
    pytest.importorskip("ortools")
    pytest.importorskip("highspy")


def plan_line(tmp_path: Path, of: dict[str, Any], *arguments: str) -> int:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(of), encoding="utf-8")
    return run_command(["plan", "--graph", str(file), "--budget", "2", *arguments])


# Without the extra.


ABSENT = "raise ModuleNotFoundError(\"No module named '{0}'\", name='{0}')"
BROKEN = "raise OSError('{0}.so: bad ELF header\\nand more')"


@pytest.mark.parametrize(
    ("library", "state", "why"),
    [
        ("ortools", ABSENT, "is not installed"),
        ("highspy", ABSENT, "is not installed"),
        ("ortools", BROKEN, "cannot be imported: ortools.so: bad ELF header"),
    ],
)
def test_without_the_extra_it_says_what_to_install(
    library: str, state: str, why: str, tmp_path: Path
) -> None:
    """Stand-ins are found before what is installed."""
    (tmp_path / "ortools" / "sat" / "python").mkdir(parents=True)
    for place in ("ortools", "ortools/sat", "ortools/sat/python"):
        (tmp_path / place / "__init__.py").touch()
    (tmp_path / "ortools" / "sat" / "python" / "cp_model.py").touch()
    (tmp_path / "highspy").mkdir()
    (tmp_path / library / "__init__.py").write_text(state.format(library), encoding="utf-8")
    (tmp_path / "p.json").write_text(json.dumps(DAG), encoding="utf-8")
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    ended = subprocess.run(
        [sys.executable, "-m", "ckptcli", "plan", "--graph", "p.json", "--planner", "cp-sat"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    first, *_, hint = ended.stderr.splitlines()
    assert first == f"Error: planner `cp-sat` needs {library}, which {why}"
    assert hint == "hint: pip install 'ckptcli[plan]'"


def test_auto_never_asks_what_may_not_be_installed() -> None:
    for of in (problem(**DAG), silu_problem(False)):
        able = {planner.keyword for planner in planners_for("auto", of)}
        assert able == {p.keyword for p in registry().values() if p.takes(of)} - {"cp-sat"}


class _Guessed(Relaxation):
    """With dual values that no solver gave."""

    def _duals(self, highspy: Any, deadline: Deadline) -> Any:
        draws = np.random.default_rng(highspy)
        return draws.exponential(1.0, len(self._rows)) * (draws.random(len(self._rows)) < 0.3)


@given(of=dags(), budget=st.integers(1, 16), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_whatever_a_solver_gives_the_bound_holds(of: DagProblem, budget: int, seed: int) -> None:
    program = dag_relaxation.relaxation(DagView(of), budget)
    program.__class__ = _Guessed
    bound, cost = program.bound(seed, Deadline()), searched(of, budget)
    assert bound is not None
    assert cost is None or bound <= cost


def test_a_solver_that_fails_has_no_answer() -> None:
    def fails() -> int:
        raise RuntimeError("no licence")

    assert interruptible(fails, lambda: None) is None
    assert interruptible(lambda: 7, lambda: None) == 7


def test_what_fits_in_the_units_of_a_solver_fits() -> None:
    draws = random.Random(5)
    for _ in range(200):
        top = draws.choice([10, 2**50, 2**90])
        sizes = [draws.randint(1, top) for _ in range(5)]
        budget = draws.randint(1, 3 * top)
        units = units_for([*sizes, budget])
        whole = [units.up(size) for size in sizes]
        assert max(whole) <= LARGEST
        if sum(whole) <= units.down(budget):
            assert sum(sizes) <= budget
        if top == 10:
            assert (sum(whole) <= units.down(budget)) == (sum(sizes) <= budget)


# With it.


@given(of=dags(), budget=st.integers(1, 16))
@settings(max_examples=40, deadline=None)
def test_no_schedule_of_a_dag_costs_less_than_the_bound(of: DagProblem, budget: int) -> None:
    highspy = pytest.importorskip("highspy")
    cost = searched(of, budget)
    bound = dag_relaxation.relaxation(DagView(of), budget).bound(highspy, Deadline())
    assert bound is not None
    assert cost is None or of.base_cost <= bound <= cost


@pytest.mark.parametrize(("budget", "least"), [(9, 2557), (6, 2857), (4, 3267)])
def test_the_bound_is_near_what_silu_costs(budget: int, least: int) -> None:
    highspy = pytest.importorskip("highspy")
    view = DagView(silu(8, retained=False))
    assert dag_relaxation.relaxation(view, budget).bound(highspy, Deadline()) == least


@pytest.mark.parametrize(("consumes", "tensors", "least"), [(False, 11, 13), (True, 7, 315)])
def test_the_bound_of_a_program_is_near_what_it_costs(
    consumes: bool, tensors: int, least: int
) -> None:
    highspy = pytest.importorskip("highspy")
    budget = tensors * TENSOR + A_FEW_BYTES
    found = tape_relaxation.relaxation(silu_problem(consumes), budget).bound(highspy, Deadline())
    assert found == least


@cache
def _small(seed: int) -> Any:
    """A silu network of a few layers with costs of its own, and a budget."""
    from ckptcli.backends import open_backend
    from ckptcli.planning.problems.program import ProgramProblem
    from ckptcli.simulation.recorder import record
    from ckptcli.workloads.silu import SiluWorkload

    draws = random.Random(seed)
    graph = record(SiluWorkload(draws.choice([2, 3]), 8), open_backend("numpy"), seed % 2 == 0)
    costs = {node.id: draws.randint(1, 9) for node in graph.nodes}
    of = ProgramProblem(graph, lambda node: costs[node.id], with_workspace=False)
    return of, of.profile.floor().peak_bytes + draws.choice([0, 256, 300, 600])


@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_of_a_program_costs_less_than_the_bound(seed: int) -> None:
    highspy = pytest.importorskip("highspy")
    of, budget = _small(seed)
    bound = tape_relaxation.relaxation(of, budget).bound(highspy, Deadline())
    found = ExactSearch(of.profile, budget).run(lambda: False)
    assert found.schedule is None or bound <= found.lower_bound


@pytest.mark.parametrize(
    ("name", "budget", "cost"),
    [("D1", 3, 11), ("D2", 9, 22), pytest.param("D7", 13, 24, marks=pytest.mark.slow)],
)
def test_the_search_finds_what_is_recorded(
    name: str, budget: int, cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the exact search out of the way, and nothing to start from."""
    solvers()
    of = next(values for key, values in recorded("plan_dags").items() if key.startswith(name))
    _alone(monkeypatch)
    plan = planned(problem("dag", **of), budget, "cp-sat")
    assert (plan.cost, plan.planner) == (cost, "cp-sat")
    assert plan.proved_optimal == (plan.lower_bound == cost)


def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other planner is asked."""
    for planner in registry().values():
        if planner.keyword != "cp-sat":
            monkeypatch.setattr(planner, "too_large", lambda problem: "left out")


@pytest.mark.slow
@pytest.mark.parametrize(("tensors", "cost"), [(11, 13), (8, 215)])
def test_a_program_is_searched_from_nothing(
    tensors: int, cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    solvers()
    _alone(monkeypatch)
    of = silu_problem(True)
    plan = planned(of, tensors * TENSOR + A_FEW_BYTES, "cp-sat")
    assert (plan.recomputed, plan.planner) == (cost, "cp-sat")


@pytest.mark.slow
def test_the_search_is_cheaper_than_what_it_starts_from(monkeypatch: pytest.MonkeyPatch) -> None:
    solvers()
    monkeypatch.setattr(registry()["tape-exact"], "too_large", lambda problem: "left out")
    of, budget = silu_problem(True), 7 * TENSOR + A_FEW_BYTES
    assert planned(of, budget).recomputed == 318
    plan = planned(of, budget, "cp-sat")
    assert (plan.recomputed, plan.planner) == (317, "cp-sat")
    assert plan.lower_bound == of.base_cost + 315


@given(of=dags(), budget=st.integers(1, 16))
@settings(max_examples=10, deadline=None)
def test_it_is_never_worse_than_what_it_starts_from(of: DagProblem, budget: int) -> None:
    solvers()
    usual, whole = planned(of, budget), planned(of, budget, "cp-sat")
    assert (whole.feasible, whole.cost) == (usual.feasible, usual.cost)


@pytest.mark.parametrize("cost", [10**90, 1e-3, 0, 2**70])
def test_figures_of_any_size_are_taken(
    cost: float,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And nothing but the answer is printed."""
    solvers()
    _alone(monkeypatch)
    large = 10**40
    nodes = [["f1", cost, large, []], ["f2", 1, large, ["f1"]], ["f3", 1, large, ["f2"]]]
    nodes += [["g3", 1, large, ["f3"]], ["g2", 1, large, ["g3", "f2"]], ["g1", 1, large, ["g2"]]]
    of = {"kind": "dag", "nodes": nodes, "goals": ["g1"], "once": ["g1", "g2", "g3"]}
    assert plan_line(tmp_path, of, "--planner", "cp-sat", "--budget", f"{3 * large}", "--json") == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out)["peak"] == 3 * large
    assert captured.err == ""
