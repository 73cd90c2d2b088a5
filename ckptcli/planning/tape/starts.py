"""Sets of held values to start a search from: what named strategies hold, and cuts by position."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate

from ckptcli.planning.tape.cost_graph import ApplyOp, CloseRegion, OpenRegion
from ckptcli.planning.tape.model import TapeModel

MOST_GROUPINGS = 12
"""Of many layers so many numbers of segments are tried."""

OUTSIDE = -1
"""The segment of what is made outside the layers or regions that are grouped."""


def starts(model: TapeModel) -> Iterator[tuple[str, frozenset[int]]]:
    """What `none`, `balanced`, the program's own regions and segments of layers hold, by name;
    nothing; and for a program without layers segments of equally many ops.
    """
    yield "none", frozenset(model.values)
    yield "balanced", frozenset(value for value in model.values if not model.marked(value))
    regions = _own_regions(model)
    if regions:
        yield "own regions", _crossing(model, lambda node: regions.get(node, OUTSIDE))
    places = model.graph.layers
    for loop, layers in enumerate(model.graph.loops):
        for segments in _numbers(layers):
            yield (
                f"segments:{segments}",
                _crossing(model, _by_layer(places, loop, layers, segments)),
            )
    if not model.graph.loops:
        widths = _widths(model)
        for segments in _numbers(max(2, len(model.values) // 4)):
            yield f"ops:{segments}", _crossing(model, _by_position(widths, segments))
    yield "nothing", frozenset()


def _numbers(most: int) -> Iterator[int]:
    """Numbers of segments from 2 to `most`, denser where they are few."""
    seen = set()
    for step in range(MOST_GROUPINGS):
        number = round(2 * (most / 2) ** (step / (MOST_GROUPINGS - 1))) if most > 2 else most
        if 1 < number <= most and number not in seen:
            seen.add(number)
            yield number


def _by_layer(
    places: tuple[tuple[int, int] | None, ...], loop: int, layers: int, segments: int
) -> Callable[[int], int]:
    def segment(node_id: int) -> int:
        place = places[node_id]
        if place is None or place[0] != loop:
            return OUTSIDE
        return place[1] * segments // layers

    return segment


def _widths(model: TapeModel) -> list[int]:
    """Of each node, the bytes of what was made up to it and is used by later nodes: what a cut
    behind it holds.
    """
    nodes = model.graph.nodes
    last_use = list(range(len(nodes)))
    for node in nodes:
        for parent in node.parents:
            last_use[parent] = node.id
    changes = [0] * (len(nodes) + 1)
    for value in model.values:
        changes[value] += model.memory_bytes(value)
        changes[last_use[value]] -= model.memory_bytes(value)
    return list(accumulate(changes))[:-1]


def _by_position(widths: list[int], segments: int) -> Callable[[int], int]:
    """Segments of about equally many nodes, each cut where the least crosses it, nearby."""
    count = len(widths)
    half = max(1, count // (2 * segments))
    cuts = []
    for cut in range(1, segments):
        middle = cut * count // segments
        near = range(max(0, middle - half), min(count, middle + half))
        cuts.append(min(near, key=lambda place: (widths[place], abs(place - middle))))
    return lambda node_id: bisect_left(cuts, node_id)


def _own_regions(model: TapeModel) -> dict[int, int]:
    """Node -> the number of the outer-most region that the program makes it in."""
    found: dict[int, int] = {}
    depth = number = 0
    for action in model.graph.forward:
        if isinstance(action, OpenRegion):
            number += depth == 0
            depth += 1
        elif isinstance(action, CloseRegion):
            depth -= 1
        elif isinstance(action, ApplyOp) and depth:
            found[action.node_id] = number
    return found


def _crossing(model: TapeModel, segment: Callable[[int], int]) -> frozenset[int]:
    """The values that another segment needs, to compute its own or in a backward step, and those
    that are made outside of all.
    """
    values = set(model.values)
    held = {value for value in values if segment(value) == OUTSIDE}
    for node in model.graph.nodes:
        for needed in (*node.needed, *node.parents):
            if needed in values and segment(needed) != segment(node.id):
                held.add(needed)
    return frozenset(held)
