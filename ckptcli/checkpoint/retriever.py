"""What answers a backward pass."""

from __future__ import annotations

from typing import Any, Protocol

from ckptcli.graph import Node


class Retriever(Protocol):
    """Gives each backward step the values that it saved, held or computed again."""

    def retrieve(self, step: Node) -> list[Any]:
        """The values that `step` saved, in its order; from here on they are the caller's."""

    def check_drained(self) -> None:
        """Raise `CheckpointError` unless everything held was used."""
