"""The program that a strategy is for, as data: what depends on what, its sizes and its costs.

It holds no array and knows no array library. It is what a strategy gets that decides by sizes and
costs (`Strategy.prepared`), and it is the same whichever strategy then runs the program.

Invariant: nodes stand in the order in which the forward pass makes them, each after its parents,
under the ids that it gives them under every strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.planning.tape.choice import Named
    from ckptcli.planning.tape.cost_graph import CostGraph


class LayerPlace(NamedTuple):
    """A layer of a program: which of its loops over layers, and which layer of that one, from 0."""

    loop: int
    number: int


@dataclass(frozen=True, slots=True)
class ProgramNode:
    """One value of the program.

    Attributes:
        id: the node's number, as the log prints it.
        op: the op that makes the value; None for a leaf.
        parents: the ids of its operands, in operand order, constants included.
        shape, dtype: of the value.
        value_bytes: the bytes of the value, whether they are its own or another's.
        memory_of: the node that made the memory which the value lies in: the node itself, or for a
            view the one that it is a view of.
        tracked: whether a gradient flows to it.
        memory_bound: Burn's mark on the op.
        needed: the ids of the values that its backward step retrieves, in the order of retrieval,
            parameters and constants included; () for what no gradient flows through from the root.
        layer: the layer in which the forward pass makes it; None outside of all. Where loops over
            layers lie inside each other, it is that of the outer-most one.
        flops: floating-point operations of one evaluation.
        moved_bytes: bytes that one evaluation reads and writes; 0 for a view.
        source: the line of the program that makes it, `FILE:LINE`.
    """

    id: int
    op: str | None
    parents: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    value_bytes: int
    memory_of: int
    tracked: bool
    memory_bound: bool
    needed: tuple[int, ...]
    layer: LayerPlace | None
    flops: int
    moved_bytes: int
    source: str


@dataclass(frozen=True, slots=True)
class ProgramGraph:
    """A program: its nodes and what it does with them.

    Attributes:
        nodes: every value of one forward pass, leaves too.
        loops: of each loop over layers, in order, how many layers it has; loops inside another one
            are left out.
        parameters: the ids of the leaves whose gradients are asked for.
        root: the id of the node that the backward pass starts from.
    """

    nodes: tuple[ProgramNode, ...]
    loops: tuple[int, ...]
    parameters: frozenset[int]
    root: int


class Program(Protocol):
    """What a strategy may ask about the program that it is prepared for; each answer costs a pass,
    once a workload.
    """

    def __call__(self) -> ProgramGraph:
        """The graph, from one forward pass."""

    def costs(self) -> CostGraph:
        """What each part of a pass takes, from one whole pass.

        Raises:
            UsageError: a backend on which that cannot be seen.
        """

    def named(self) -> Sequence[Named]:
        """What named strategies take, by the engine without arrays."""

    def peak_bytes(self, strategy: Strategy) -> int:
        """The peak of a strategy above parameters and input, workspace included, likewise."""
