"""What answers a backward pass."""

from __future__ import annotations

from typing import Any, Protocol

from ckptcli.graph import Node


class Retriever(Protocol):
    """Gives each backward step the values that it saved, held or computed again."""

    def retrieve(self, node: Node, step: Node) -> Any:
        """The node's value for the backward step of `step`; counts as one use."""

    def check_drained(self) -> None:
        """Raise `CheckpointError` unless everything held was used."""
