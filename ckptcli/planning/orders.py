"""Orders in which to compute each node of a dag once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli.planning.dag_view import DagView

MOST_LOOKED_AT = 64
"""Of the nodes that are ready, this many are compared, so that time is linear in the graph."""


def listed(view: DagView) -> list[int]:
    """As the problem lists them."""
    return list(view.needed)


def freeing(view: DagView) -> list[int]:
    """Of the nodes that are ready always the one that leaves least resident, the first of those."""
    waiting = {v: len(view.parents[v]) for v in view.needed}
    uses = {v: len(view.children[v]) for v in view.needed}
    ready = [v for v in view.needed if not waiting[v]]
    order = []
    while ready:
        looked_at = range(min(len(ready), MOST_LOOKED_AT))
        at = min(looked_at, key=lambda i: (_grows(view, uses, ready[i]), ready[i]))
        v = ready.pop(at)
        order.append(v)
        for parent in view.parents[v]:
            uses[parent] -= 1
        for child in view.children[v]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.insert(0, child)
    return order


def _grows(view: DagView, uses: dict[int, int], v: int) -> int:
    """How much more is resident once `v` is computed and what it used up is freed."""
    keep = view.problem.keep
    freed = sum(view.size[p] for p in view.parents[v] if uses[p] == 1 and p not in keep)
    stays = uses[v] or v in keep
    return (view.size[v] if stays else 0) - freed


def moves_of(view: DagView, order: Sequence[int]) -> Iterator[int]:
    """Compute each node in this order, free each after its last use."""
    keep = view.problem.keep
    uses = {v: len(view.children[v]) for v in view.needed}
    for v in order:
        yield v
        for parent in view.parents[v]:
            uses[parent] -= 1
            if not uses[parent] and parent not in keep:
                yield ~parent
        if not uses[v] and v not in keep:
            yield ~v
