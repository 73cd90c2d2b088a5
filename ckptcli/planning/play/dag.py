"""Plays a schedule on a dag; `problems/dag.py` has the rules."""

from __future__ import annotations

from collections.abc import Iterable

from ckptcli.planning.actions import COMPUTE, FREE, Action
from ckptcli.planning.play.base import Played, Runs, refuse, unknown
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.dag import DagProblem


def play(problem: DagProblem, actions: Iterable[Action]) -> Played:
    """What the schedule costs and takes.

    Raises:
        PlanError: an action that the rules exclude, or a goal that is not reached.
    """
    game = _Game(problem)
    for index, action in enumerate(actions):
        if len(action) != 2 or action[0] not in (COMPUTE, FREE):
            unknown(index, action)
        if action[1] not in game.places:
            refuse(index, action, "the problem has no such node")
        node = game.places[action[1]]
        why = game.compute(node) if action[0] == COMPUTE else game.free(node)
        if why:
            refuse(index, action, why)
    missing = problem.goals.difference(game.times)
    if missing:
        refuse(game.evaluations, ("end",), f"{problem.nodes[min(missing)].name} is not computed")
    return Played(game.cost, game.peak, game.evaluations, game.runs)


class _Game:
    """What is resident, and how often each node was computed."""

    def __init__(self, problem: DagProblem) -> None:
        self.problem = problem
        self.places: dict[str | int, int] = {n.name: i for i, n in enumerate(problem.nodes)}
        self.resident: set[int] = set()
        self.times: dict[int, int] = {}
        self.cost: Number = 0
        self.live = self.peak = self.evaluations = 0
        self._latest_first = -1
        self._backward_began = False
        self.runs: Runs = "tape"

    def compute(self, node: int) -> str:
        """Why it cannot be; "" once it is."""
        of = self.problem.nodes[node]
        if node in self.resident:
            return "it is resident"
        if node in self.problem.once and node in self.times:
            return "it may be computed once only"
        for parent in of.parents:
            if parent not in self.resident:
                return f"{self.problem.nodes[parent].name} is not resident"
        self._notice(node)
        self.cost += of.cost
        self.evaluations += 1
        self.times[node] = self.times.get(node, 0) + 1
        self.resident.add(node)
        self.live += of.size
        self.peak = max(self.peak, self.live + of.workspace)
        return ""

    def free(self, node: int) -> str:
        """Why it cannot be; "" once it is."""
        if node not in self.resident:
            return "it is not resident"
        if node in self.problem.keep:
            return "it must be kept"
        self.resident.remove(node)
        self.live -= self.problem.nodes[node].size
        return ""

    def _notice(self, node: int) -> None:
        """A tape computes in the order of the list, and again only once backward has begun."""
        if node in self.times:
            if not self._backward_began:
                self.runs = "program"
            return
        if node < self._latest_first or (self._backward_began and node not in self.problem.once):
            self.runs = "program"
        self._latest_first = node
        self._backward_began = self._backward_began or node in self.problem.once
