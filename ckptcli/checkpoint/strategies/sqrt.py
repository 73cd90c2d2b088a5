"""`sqrt`: as many regions as the square root of the number of layers, cut by bytes.

Where they are cut goes by what layers hold and compute again (`ckptcli.checkpoint.segments`), which
needs the program. Without it, as for a program in another library, they are cut by count; so they
are where layers are alike, and with `sqrt:count` always.

Source: T. Chen et al., "Training deep nets with sublinear memory cost" (2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ckptcli import units
from ckptcli.checkpoint.layer_bytes import Grouping, grouped, layer_bytes
from ckptcli.checkpoint.policies import nothing_saveable
from ckptcli.checkpoint.program_graph import Program, ProgramGraph
from ckptcli.checkpoint.segments import even_sizes, least_peak
from ckptcli.checkpoint.strategies.base import LayerRegion, Strategy
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.errors import UsageError

BY_COUNT = "count"


@dataclass(frozen=True, slots=True)
class _Choice:
    """The segments of a loop over layers, and those that it would have by count."""

    chosen: Grouping
    by_count: Grouping


@register
class SquareRoot(Strategy):
    """Segments as the square root of the number of layers, rounded."""

    keyword: ClassVar[str] = "sqrt"
    summary: ClassVar[str] = "recompute round(sqrt(layers)) regions, cut by bytes or by count"
    grammar: ClassVar[str] = "sqrt[:count]"
    label: ClassVar[str] = "Sqrt"
    needs_layers: ClassVar[bool] = True

    def __init__(
        self, by_count: bool = False, choices: Mapping[int, _Choice] | None = None
    ) -> None:
        """`choices` are those made for a program, by the number of layers of its loops."""
        self._by_count = by_count
        self._choices = choices or {}

    @property
    def name(self) -> str:
        return f"{self.keyword}:{BY_COUNT}" if self._by_count else self.keyword

    @classmethod
    def parse(cls, arguments: str) -> SquareRoot:
        """Nothing, or `count`."""
        if arguments not in ("", BY_COUNT):
            raise UsageError(
                f"strategy `sqrt` takes `{BY_COUNT}` or nothing, got `{arguments}`",
                "write `sqrt` to cut layers by bytes, `sqrt:count` to cut them by count",
            )
        return cls(by_count=bool(arguments))

    def prepared(self, program: Program) -> SquareRoot:
        return self if self._by_count else SquareRoot(choices=_choices(program()))

    def layer_regions(self, count: int) -> Sequence[LayerRegion]:
        choice = self._choices.get(count)
        sizes = even_sizes(count, _parts(count)) if choice is None else choice.chosen.sizes
        return [LayerRegion(size, nothing_saveable) for size in sizes]

    def reasons(self) -> Sequence[str]:
        return tuple(line for choice in self._choices.values() for line in _reasons(choice))


def _parts(count: int) -> int:
    root: float = count**0.5
    return max(1, round(root))


def _choices(graph: ProgramGraph) -> dict[int, _Choice]:
    """For each number of layers; of loops with the same number, by the one that peaks highest."""
    choices: dict[int, _Choice] = {}
    for layers in layer_bytes(graph):
        parts = _parts(layers.count)
        by_count = grouped(layers, even_sizes(layers.count, parts))
        known = choices.get(layers.count)
        if known is None or by_count.peak_bytes > known.by_count.peak_bytes:
            choices[layers.count] = _Choice(least_peak(layers, parts), by_count)
    return choices


def _reasons(choice: _Choice) -> Iterator[str]:
    """A line a segment, and one about all."""
    chosen, by_count = choice.chosen, choice.by_count
    start = 0
    for size, again_bytes, held_bytes in zip(chosen.sizes, chosen.again_bytes, chosen.held_bytes):
        yield (
            f"segment {_layers(start, size)}: computes {units.size(again_bytes)} again, "
            f"{units.size(held_bytes)} held for later segments"
        )
        start += size
    yield f"segments by bytes: {_sum(chosen)}{_beside(chosen, by_count)}"


def _beside(chosen: Grouping, by_count: Grouping) -> str:
    if chosen == by_count:
        return "; by count they are the same"
    starts = [sum(by_count.sizes[:place]) for place in range(len(by_count.sizes))]
    names = ", ".join(map(_layers, starts, by_count.sizes))
    return f"; by count they would be {names}: {_sum(by_count)}"


def _sum(grouping: Grouping) -> str:
    held_bytes = grouping.peak_bytes - grouping.largest_bytes
    return (
        f"{units.size(held_bytes)} held + {units.size(grouping.largest_bytes)} of the largest = "
        f"{units.size(grouping.peak_bytes)}"
    )


def _layers(start: int, size: int) -> str:
    return f"layer {start}" if size == 1 else f"layers {start} to {start + size - 1}"
