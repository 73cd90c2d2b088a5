"""A value that was computed again and came back otherwise, as whoever watched it knows it.

Invariant: each says in words which value it is and how it differs, and what it is a part of: values
of one part follow from its first.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ckptcli.measure.difference import Difference
from ckptcli.measure.fields import FLAT, derived
from ckptcli.measure.module_check import Place


class WrongValue(Protocol):
    """Its text names the value and the difference."""

    @property
    def part(self) -> Hashable:
        """What is told of once."""


@dataclass(frozen=True, slots=True)
class NodeValue:
    """Of a node of ckpt's engine.

    Attributes:
        node, op: Which.
        source: The line of the program that made it.
        difference: The first element that differs.
        layer: In which layer of a network it was made; null outside.
        layer_name: What the program calls that.
    """

    node: int
    op: str
    source: str
    difference: Difference
    layer: int | None = None
    layer_name: str = ""

    @property
    def part(self) -> Hashable:
        """Itself."""
        return self.node

    def __str__(self) -> str:
        layer = f"{self.layer_name}, " if self.layer_name else ""
        return f"node {self.node} ({self.op}, {layer}{self.source}): {self.difference}"


@dataclass(frozen=True, slots=True)
class LayerValue:
    """Of a workload in another library.

    Attributes:
        layer, name: Which.
        difference: The element that moved most.
    """

    layer: int
    name: str
    difference: Difference

    @property
    def part(self) -> Hashable:
        """Itself."""
        return self.layer, self.name

    def __str__(self) -> str:
        return f"layer {self.layer}, {self.name}: {self.difference}"


@dataclass(frozen=True, slots=True)
class OpValue:
    """Of an op inside a checkpoint of a PyTorch module.

    Attributes:
        place: Where its op is.
        output: The how manieth of what the op gives, from 0.
        difference: The first element that differs; null where a second pass did not show it.
    """

    place: Place = field(metadata=FLAT)
    output: int
    difference: Difference | None

    @property
    def part(self) -> Hashable:
        """The block."""
        return tuple(self.place.block)

    def __str__(self) -> str:
        return str(self.place) + ("" if self.difference is None else f": {self.difference}")


@dataclass(frozen=True, slots=True)
class EquationValue:
    """Of an equation of a JAX function.

    Attributes:
        primitive: What made it.
        source: The line as JAX names it.
        line, function: The user's own line that led to it.
        region: The how manieth checkpoint it is in, from 1.
        element: Of the value, where it differs first.
        forward, again: That element in both passes.
        ulp: How many spacings of the dtype lie between them; null where that says nothing.
        apart: The largest difference of any element, as a share of the largest one.
    """

    primitive: str
    source: str
    line: str
    function: str
    region: int
    element: Sequence[int]
    forward: float
    again: float
    ulp: float | None
    apart: float

    @property
    @derived
    def difference(self) -> Difference:
        """The first element that differs."""
        return Difference(tuple(self.element), self.forward, self.again, self.ulp)

    @property
    def part(self) -> Hashable:
        """Itself."""
        return self.region, self.source, self.primitive, tuple(self.element)

    def __str__(self) -> str:
        place = self.source if self.line in self.source else f"{self.source}, {self.line}"
        return (
            f"`{self.primitive}` at {place}, checkpoint {self.region}: {self.difference}, at most "
            f"{self.apart:.1e} of the largest"
        )
