"""`balanced`: Burn's `BalancedCheckpointing`. Memory-bound values are computed again."""

from __future__ import annotations

from typing import ClassVar

from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.graph import Node, Operation


@register
class BalancedCheckpointing(Strategy):
    """Follows the op's mark: the output of a memory-bound op is computed again from its parents.

    With a constant among the parents the op counts as compute bound, since nobody knows whether
    the constant will be kept; the next op over its output may be memory bound again.
    """

    keyword: ClassVar[str] = "balanced"
    summary: ClassVar[str] = "recompute memory-bound ops (element-wise, views) from held values"
    label: ClassVar[str] = "Balanced"
    follows_marks: ClassVar[bool] = True

    def recomputes(self, node: Node) -> bool:
        op: Operation = node.op  # type: ignore[assignment]
        return op.memory_bound and node.mask == op.all_tracked
