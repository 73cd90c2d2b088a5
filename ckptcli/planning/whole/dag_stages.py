"""A dag in one order of first computations, as stages; and an answer as moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ckptcli.planning.actions import COMPUTE, Action
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.whole.staged import Answer, Stage, Staged, Value, last_uses


def staged(view: DagView, order: Sequence[int]) -> Staged:
    """Value and stage number i are those of the i-th node of the order."""
    place = {v: i for i, v in enumerate(order)}
    parents = [tuple(place[p] for p in view.parents[v]) for v in order]
    until = last_uses(parents, parents)
    values = [
        Value(
            view.cost[v],
            view.size[v],
            view.size[v] + view.workspace[v],
            parents[i],
            None,
            first=i,
            until=until[i],
            is_once=view.is_once[v],
            stays=v in view.problem.keep,
        )
        for i, v in enumerate(order)
    ]
    return Staged(values, [Stage(0)] * len(order))


def order_of(view: DagView, actions: Iterable[Action]) -> list[int]:
    """The needed nodes by first computation."""
    places = {node.name: v for v, node in enumerate(view.problem.nodes)}
    first = dict.fromkeys(places[str(name)] for verb, name in actions if verb == COMPUTE)
    return [v for v in first if v in set(view.needed)]


def answer_of(view: DagView, order: Sequence[int], actions: Iterable[Action]) -> Answer:
    """What a schedule computes again, in this form."""
    names = {view.name(v): i for i, v in enumerate(order)}
    done = 0
    made: dict[tuple[int, int], None] = {}
    for verb, name in actions:
        number = names.get(str(name))
        if verb != COMPUTE or number is None:
            continue
        if number == done:
            done += 1
        else:
            made[done, number] = None
    return Answer(frozenset(), tuple(made))


def moves_of(view: DagView, order: Sequence[int], answer: Answer) -> list[int]:
    """What to compute, and to free at its last use."""
    keep = view.problem.keep
    firsts = [(stage, stage, v) for stage, v in enumerate(order)]
    again = [(stage, number, order[number]) for stage, number in answer.made]
    sequence = sorted([*firsts, *again])
    alive = set(keep)
    backwards: list[int] = []
    for _, _, v in reversed(sequence):
        if v not in alive:
            backwards.append(~v)
        last = [p for p in view.parents[v] if p not in alive]
        backwards += [~p for p in last]
        alive.update(last)
        backwards.append(v)
        if v not in keep:
            alive.discard(v)
    return backwards[::-1]
