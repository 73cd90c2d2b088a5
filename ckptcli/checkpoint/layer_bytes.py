"""What each layer of a program's loop makes that the backward pass needs, in bytes.

A value counts where it takes memory of its own (a view counts as what it is a view of), where a
layer of the loop makes it, and where somebody needs it: a backward step that retrieves it, or the
recomputation of another value. A group of layers computes again what its own steps retrieve; what a
later group needs is held for that, once, and what a step outside the loop retrieves is held under
every grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ckptcli.checkpoint.program_graph import ProgramGraph, ProgramNode


@dataclass(slots=True)
class LayerValue:
    """One block of memory: the layer that makes it, and the layers that need it.

    Attributes:
        made: the layer.
        value_bytes: how large it is.
        first_step: the first layer with a backward step that retrieves it; None if there is none.
        last_need: the last layer that needs it, to compute something again or in a backward step;
            `made` if there is none, or if it is held in any case.
    """

    made: int
    value_bytes: int
    first_step: int | None
    last_need: int


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """The values of one loop of `count` layers."""

    count: int
    values: Sequence[LayerValue]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Layers in groups, each one region: what it costs by bytes.

    Attributes:
        sizes: how many layers each group has.
        again_bytes: what each group computes again for its backward steps.
        held_bytes: what of each group is held for later groups.
    """

    sizes: tuple[int, ...]
    again_bytes: tuple[int, ...]
    held_bytes: tuple[int, ...]

    @property
    def largest_bytes(self) -> int:
        """What the group computes again that computes most."""
        return max(self.again_bytes)

    @property
    def peak_bytes(self) -> int:
        """All that is held, and the largest group's values on top of it."""
        return sum(self.held_bytes) + self.largest_bytes


def grouped(layers: LayerBytes, sizes: Iterable[int]) -> Grouping:
    """The bytes of the layers in groups of these sizes, which cover them all."""
    sizes = tuple(sizes)
    group_of = [group for group, size in enumerate(sizes) for _ in range(size)]
    again, held = [0] * len(sizes), [0] * len(sizes)
    for value in layers.values:
        made = group_of[value.made]
        if group_of[value.last_need] > made:
            held[made] += value.value_bytes
        if value.first_step is not None and group_of[value.first_step] == made:
            again[made] += value.value_bytes
    return Grouping(sizes, tuple(again), tuple(held))


def layer_bytes(graph: ProgramGraph) -> list[LayerBytes]:
    """The values of each loop over layers, in the order of the loops."""
    return [
        LayerBytes(count, _values_of(graph, number)) for number, count in enumerate(graph.loops)
    ]


@dataclass(slots=True)
class _Loop:
    """The values of one loop by the node that made the memory, and those held in any case."""

    values: dict[int, LayerValue] = field(default_factory=dict)
    held_anyway: set[int] = field(default_factory=set)

    def need(self, memory: int, layer: int | None, by_step: bool) -> None:
        """A step, or a recomputation, of `layer` needs a value; None for one outside the loop."""
        value = self.values.get(memory)
        if value is None:
            return
        if layer is None:
            if by_step:
                self.held_anyway.add(memory)
            return
        value.last_need = max(value.last_need, layer)
        if by_step:
            value.first_step = layer if value.first_step is None else min(value.first_step, layer)


def _values_of(graph: ProgramGraph, number: int) -> list[LayerValue]:
    loop = _Loop()
    memory_of = {node.id: node.memory_of for node in graph.nodes}
    for node in graph.nodes:
        layer = _layer_in(node, number)
        if layer is not None and node.op is not None and node.memory_of == node.id:
            loop.values[node.id] = LayerValue(layer, node.value_bytes, None, layer)
    for node in graph.nodes:
        for needed in node.needed:
            loop.need(memory_of[needed], _layer_in(node, number), by_step=True)
    for node in _computed_again(graph, number):
        for parent in node.parents:
            loop.need(memory_of[parent], _layer_in(node, number), by_step=False)
    for memory in loop.held_anyway:
        loop.values[memory].last_need = loop.values[memory].made
    return [
        value
        for value in loop.values.values()
        if value.first_step is not None or value.last_need > value.made
    ]


def _computed_again(graph: ProgramGraph, number: int) -> Iterator[ProgramNode]:
    """The nodes of a loop that lead to what a backward step of the loop retrieves."""
    wanted: set[int] = set()
    for node in graph.nodes:
        if _layer_in(node, number) is not None:
            wanted.update(node.needed)
    for node in reversed(graph.nodes):
        if node.id in wanted and node.op is not None and _layer_in(node, number) is not None:
            wanted.update(node.parents)
            yield node


def _layer_in(node: ProgramNode, number: int) -> int | None:
    """The node's layer of the loop with this number; None outside of it."""
    return node.layer.number if node.layer is not None and node.layer.loop == number else None
