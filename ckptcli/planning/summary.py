"""A schedule in short: what is held when backward begins and why, and what is computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ckptcli.planning.actions import COMPUTE, FREE, Action
from ckptcli.planning.plan import Plan
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.dag import DagProblem


@dataclass(frozen=True, slots=True)
class Held:
    """A value that is resident when backward begins.

    Attributes:
        name, size: of the value.
        user: the next that is made of it; "" if nothing is.
        again: what making it of the other values that are held would cost; None if it cannot be.
    """

    name: str
    size: int
    user: str
    again: Number | None


@dataclass(frozen=True, slots=True)
class Again:
    """A value that is computed more than once: how often on top, and what that costs."""

    name: str
    times: int
    cost: Number


@dataclass(frozen=True, slots=True)
class Summary:
    """Of a dag with gradients in it, what is held; of any dag, what is computed again."""

    held: tuple[Held, ...]
    again: tuple[Again, ...]


def summary_of(plan: Plan) -> Summary | None:
    """None for what has no values of its own to name: chains, steps, items, and no plan."""
    problem = plan.problem
    if not isinstance(problem, DagProblem) or plan.actions is None or not plan.feasible:
        return None
    actions = list(plan.actions())
    costs = {node.name: node.cost for node in problem.nodes}
    times = Counter(str(name) for verb, name in actions if verb == COMPUTE)
    again = [Again(v, count - 1, (count - 1) * costs[v]) for v, count in times.items() if count > 1]
    again.sort(key=lambda one: -one.cost)
    return Summary(tuple(_held(problem, actions)), tuple(again))


def _held(problem: DagProblem, actions: Sequence[Action]) -> Iterable[Held]:
    """What can be computed again and is resident when the first is computed that cannot."""
    once = {problem.nodes[v].name for v in problem.once}
    begin = next((i for i, action in enumerate(actions) if action[1] in once), len(actions))
    resident: set[str] = set()
    for verb, name in actions[:begin]:
        (resident.discard if verb == FREE else resident.add)(str(name))
    places = {node.name: v for v, node in enumerate(problem.nodes)}
    users = _next_users(problem, actions[begin:])
    for name in sorted(resident - once, key=places.__getitem__):
        v = places[name]
        others = {places[other] for other in resident - {name}}
        yield Held(name, problem.nodes[v].size, users.get(name, ""), _cost(problem, v, others))


def _next_users(problem: DagProblem, actions: Iterable[Action]) -> dict[str, str]:
    """What is next made of each value."""
    places = {node.name: v for v, node in enumerate(problem.nodes)}
    found: dict[str, str] = {}
    for verb, name in actions:
        if verb == COMPUTE:
            for parent in problem.nodes[places[str(name)]].parents:
                found.setdefault(problem.nodes[parent].name, str(name))
    return found


def _cost(problem: DagProblem, v: int, resident: set[int]) -> Number | None:
    """Of a node and of all that leads to it and is not resident."""
    todo, seen = [v], {v}
    cost: Number = 0
    while todo:
        here = todo.pop()
        if here in problem.once:
            return None
        cost += problem.nodes[here].cost
        for parent in problem.nodes[here].parents:
            if parent not in resident and parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return cost
