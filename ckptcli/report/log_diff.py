"""Two logs of one program side by side: the same retrievals, with other counts.

A strategy changes neither which values the backward pass retrieves nor their order, only how many
nodes stand between a value and what is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from ckptcli.events import Event, NodeCreated, Retrieved, Visited
from ckptcli.units import count


def log_diff(
    names: tuple[str, str], first: Sequence[Event], second: Sequence[Event]
) -> Iterator[str]:
    """A line a retrieval: the value, who asks, nodes to compute under each strategy."""
    ops = {event.node_id: event.op or "leaf" for event in first if isinstance(event, NodeCreated)}
    widths = [max(len(name), 5) for name in names]
    yield f"{'value':<20}  {'asked for by':<20}  {names[0]:>{widths[0]}}  {names[1]:>{widths[1]}}"
    pairs = list(zip_longest(_retrievals(first), _retrievals(second)))
    for one, other in pairs:
        asked = one or other
        assert asked is not None
        value, step = asked[0].node_id, asked[0].needed_by
        counts = [str(len(visited)) if visited else "-" for visited in (_nodes(one), _nodes(other))]
        line = (
            f"{f'{value} ({ops[value]})':<20}  {f'{step} ({ops[step]})':<20}  "
            f"{counts[0]:>{widths[0]}}  {counts[1]:>{widths[1]}}"
        )
        yield line if _nodes(one) == _nodes(other) else f"{line}  {_way(one, other)}"
    same = sum(_asked(one) == _asked(other) for one, other in pairs)
    every = count(len(pairs), "retrieval")
    yield f"{same} of {every} {'asks' if same == 1 else 'ask'} for the same value in the same order"


_Entry = tuple[Retrieved, list[int]]


def _retrievals(events: Sequence[Event]) -> list[_Entry]:
    entries: list[_Entry] = []
    for event in events:
        if isinstance(event, Retrieved):
            entries.append((event, []))
        elif isinstance(event, Visited):
            entries[-1][1].append(event.node_id)
    return entries


def _nodes(entry: _Entry | None) -> list[int]:
    return [] if entry is None else entry[1]


def _asked(entry: _Entry | None) -> tuple[int, int] | None:
    return None if entry is None else (entry[0].node_id, entry[0].needed_by)


def _way(one: _Entry | None, other: _Entry | None) -> str:
    longer = max(_nodes(one), _nodes(other), key=len)
    return f"by way of {', '.join(map(str, longer))}"
