"""The least that any plan of a problem takes, by kind of problem."""

from __future__ import annotations

from ckptcli.planning import chain_floor, dag_floor, tape_floor
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.planners.base import Deadline, Floor
from ckptcli.planning.problems.base import Problem
from ckptcli.planning.problems.chain import ChainProblem
from ckptcli.planning.problems.dag import DagProblem
from ckptcli.planning.problems.program import ProgramProblem


def floor_of(problem: Problem, deadline: Deadline) -> Floor | None:
    """The highest bound that there is time for; None where the planners say it themselves."""
    if isinstance(problem, DagProblem):
        return dag_floor.floor_of(DagView(problem), deadline)
    if isinstance(problem, ChainProblem):
        return chain_floor.floor_of(problem)
    if isinstance(problem, ProgramProblem):
        return tape_floor.floor_of(problem)
    return None
