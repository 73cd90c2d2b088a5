"""Plays a choice of items: what is not kept is computed again."""

from __future__ import annotations

from collections.abc import Iterable

from ckptcli.planning.actions import KEEP, Action
from ckptcli.planning.play.base import Played, refuse, unknown
from ckptcli.planning.problems.knapsack import KnapsackProblem


def play(problem: KnapsackProblem, actions: Iterable[Action]) -> Played:
    """Cost: every item once, and once more what is not kept. Peak: the memory that is kept.

    Raises:
        PlanError: an item that does not exist, or is kept twice.
    """
    kept: set[int] = set()
    for index, action in enumerate(actions):
        if len(action) != 2 or action[0] != KEEP or not isinstance(action[1], int):
            unknown(index, action)
        if not 0 <= action[1] < len(problem.memory):
            refuse(index, action, "the problem has no such item")
        if action[1] in kept:
            refuse(index, action, "it is kept already")
        kept.add(action[1])
    again = [cost for item, cost in enumerate(problem.runtime) if item not in kept]
    evaluations = len(problem.memory) + len(again)
    peak = sum(problem.memory[item] for item in kept)
    return Played(problem.base_cost + sum(again), peak, evaluations, "tape")
