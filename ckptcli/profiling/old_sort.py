"""What Burn's sort took before its pull request 5679, counted from the events of a pass.

To retrieve a value Burn sorts what is not held on the way to it, operands first. The old sort was
a function that returned a list: of a value that is held, the value; of another one, the lists of
all its operands one after the other, without what is in the result already, and the value. It
remembers nothing between two calls: what several operands lead to is sorted again for each, and
whether an id is in the result is found by comparing it with one after the other. The order is the
same, so the log is.

Invariant: every count is exact, and is found without repeating the old sort's work: what a call
costs is worked out once for each node of a retrieval.

Source: Burn before and after pull request 5679 (first in 0.22.0-pre.4),
`burn-autodiff/src/checkpoint/base.rs`, `topological_sort`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ckptcli.events import Event, NodeCreated, Recomputed, RegionClosed, Retrieved, Visited
from ckptcli.measure.sort_cost import SortCost


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One sort as it came out: the nodes in order, and those of them that were not held."""

    order: Sequence[int]
    not_held: frozenset[int]


def old_sort_cost(events: Sequence[Event]) -> SortCost | None:
    """What the old sort would have taken in a recorded pass.

    None where the program has regions: what these compute is planned, and no sort is asked.
    """
    if any(isinstance(event, RegionClosed) for event in events):
        return None
    parents = {e.node_id: e.parents for e in events if isinstance(e, NodeCreated)}
    return sum((_cost(one, parents) for one in retrievals(events)), SortCost())


def retrievals(events: Sequence[Event]) -> Iterator[Retrieval]:
    """The sorts of a recorded pass, in order."""
    order: list[int] = []
    not_held: set[int] = set()
    for event in events:
        if isinstance(event, Retrieved):
            if order:
                yield Retrieval(order, frozenset(not_held))
            order, not_held = [], set()
        elif isinstance(event, Visited):
            order.append(event.node_id)
        elif isinstance(event, Recomputed):
            not_held.add(event.node_id)
    if order:
        yield Retrieval(order, frozenset(not_held))


def _cost(retrieval: Retrieval, parents: Mapping[int, Sequence[int]]) -> SortCost:
    """Of one retrieval, whose order has operands before what is computed of them."""
    uses = Counter(p for node in retrieval.not_held for p in parents[node])
    lists: dict[int, dict[int, int]] = {}
    calls: dict[int, SortCost] = {}
    for node in retrieval.order:
        if node not in retrieval.not_held:
            lists[node], calls[node] = {node: 0}, SortCost(visits=1)
            continue
        operands = parents[node]
        cost = SortCost(visits=1)
        for operand in operands:
            cost += calls[operand] + SortCost(look_ups=len(lists[operand]))
        uses.subtract(operands)
        lists[node], comparisons = _joined(operands, lists, uses)
        lists[node][node] = len(lists[node])
        calls[node] = cost + SortCost(comparisons=comparisons)
        for operand in operands:
            if not uses[operand]:
                lists.pop(operand, None)
    return calls[retrieval.order[-1]] + SortCost(retrievals=1, visits_today=len(retrieval.order))


def _joined(
    operands: Sequence[int], lists: Mapping[int, dict[int, int]], uses: Mapping[int, int]
) -> tuple[dict[int, int], int]:
    """The lists of all operands as one, id -> place, and the comparisons of ids that it took.

    A list begins the result as it is: each id is compared with all before it. It is found at its
    own place when it comes again. It is copied only where another node needs it too.
    """
    if not operands:
        return {}, 0
    first, *others = operands
    length = len(lists[first])
    comparisons = length * (length - 1) // 2
    result = dict(lists[first]) if uses[first] else lists[first]
    for operand in others:
        if operand == first:
            comparisons += length * (length + 1) // 2
            continue
        for node in lists[operand]:
            place = result.get(node)
            if place is None:
                comparisons += len(result)
                result[node] = len(result)
            else:
                comparisons += place + 1
    return result, comparisons
