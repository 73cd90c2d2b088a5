"""What does not fit into a room has to be made again: the least that this costs."""

from __future__ import annotations

from collections.abc import Iterable

from ckptcli.planning.problems.base import Number


def least_beside(items: Iterable[tuple[Number, int]], room: int) -> Number:
    """The cost of (cost, size) items less the most that room saves, parts of an item allowed."""
    dearest_first = sorted(
        items, key=lambda item: item[0] / item[1] if item[1] else 0, reverse=True
    )
    left: Number = sum(cost for cost, _ in dearest_first)
    for cost, size in dearest_first:
        if size > room:
            part = cost * room
            return left - (-(-part // size) if isinstance(part, int) else part / size)
        room -= size
        left -= cost
    return max(left, 0)
