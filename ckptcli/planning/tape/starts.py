"""Sets of held values to start a search from: those that named strategies hold."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli.planning.tape.model import TapeModel

MOST_GROUPINGS = 12
"""Of a program of many layers so many numbers of segments are tried."""


def starts(model: TapeModel) -> Iterator[tuple[str, frozenset[int]]]:
    """What `none`, `balanced` and segments of layers hold, by name; and nothing."""
    yield "none", frozenset(model.values)
    yield "balanced", frozenset(value for value in model.values if not model.marked(value))
    for loop, layers in enumerate(model.graph.loops):
        for segments in _numbers(layers):
            yield f"segments:{segments}", _crossing(model, loop, layers, segments)
    yield "nothing", frozenset()


def _numbers(layers: int) -> Iterator[int]:
    """Numbers of segments from 2 to a layer each, denser where they are few."""
    seen = set()
    for step in range(MOST_GROUPINGS):
        number = round(2 * (layers / 2) ** (step / (MOST_GROUPINGS - 1))) if layers > 2 else layers
        if 1 < number <= layers and number not in seen:
            seen.add(number)
            yield number


def _crossing(model: TapeModel, loop: int, layers: int, segments: int) -> frozenset[int]:
    """The values that another segment needs, to compute its own or in a backward step, and those
    that are made outside the loop or needed there.
    """
    nodes, places = model.graph.nodes, model.graph.layers

    def segment(node_id: int) -> int:
        place = places[node_id]
        if place is None or place[0] != loop:
            return -1
        return place[1] * segments // layers

    values = set(model.values)
    held = {value for value in values if segment(value) < 0}
    for node in nodes:
        for needed in (*node.needed, *node.parents):
            if needed in values and segment(needed) != segment(node.id):
                held.add(needed)
    return frozenset(held)
