"""`none`: Burn's `NoCheckpointing`. Everything that the backward pass needs is held."""

from __future__ import annotations

from typing import ClassVar

from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.builder import build
from ckptcli.checkpoint.strategies.base import Retriever
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.events import Sink
from ckptcli.graph import Node


@register
class NoCheckpointing:
    """Treats every op as compute bound: its output is held when needed, no parent is backed up."""

    name: ClassVar[str] = "none"
    summary: ClassVar[str] = "hold every value that the backward pass needs (Burn's default)"
    label: ClassVar[str] = "Disabled"

    def recomputes(self, node: Node) -> bool:
        return False

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        return build(steps, namespace, sink)
