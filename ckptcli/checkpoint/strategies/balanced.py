"""`balanced`: Burn's `BalancedCheckpointing`. Memory-bound values are computed again."""

from __future__ import annotations

from typing import ClassVar

from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.builder import build
from ckptcli.checkpoint.strategies.base import Retriever
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.events import Sink
from ckptcli.graph import Node


@register
class BalancedCheckpointing:
    """Follows the op's mark: the output of a memory-bound op is computed again from its parents.

    With a constant among the parents the op counts as compute bound, since nobody knows whether
    the constant will be kept; the next op over its output may be memory bound again.
    """

    name: ClassVar[str] = "balanced"
    summary: ClassVar[str] = "recompute memory-bound ops (element-wise, views) from held values"
    label: ClassVar[str] = "Balanced"

    def recomputes(self, node: Node) -> bool:
        op = node.op
        assert op is not None
        return op.memory_bound and node.mask == op.all_tracked

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        return build(steps, namespace, sink)
