"""What a strategy is: two decisions, one in each pass.

A strategy never changes a value; it decides which values are held and how the others come back.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from ckptcli.backends.base import Namespace
from ckptcli.events import Sink
from ckptcli.graph import Node


class Retriever(Protocol):
    """What answers the backward pass."""

    step: int
    """The node whose backward step runs now; told by the tape when somebody watches."""

    def retrieve(self, node: Node) -> Any:
        """The node's value; counts as one use."""

    def check_drained(self) -> None:
        """Raise `CheckpointError` unless everything held was used."""


class Strategy(Protocol):
    """Decides a node's property in forward, supplies what answers `retrieve` in backward."""

    name: ClassVar[str]
    summary: ClassVar[str]
    label: ClassVar[str]
    """The name in Burn's device line."""

    def recomputes(self, node: Node) -> bool:
        """Whether the value of this tracked node is computed again instead of being held.

        Called once, when the node is made; `op`, `params`, `parents` and `mask` are set.
        """

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        """What answers the backward pass over `steps` (emission order, root first)."""
