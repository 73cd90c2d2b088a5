"""`balanced`: Burn's `BalancedCheckpointing`. Memory-bound values are computed again."""

from __future__ import annotations

from typing import ClassVar

from ckptcli.checkpoint.policies.compute_bound import compute_bound_saveable
from ckptcli.checkpoint.strategies.base import Elsewhere, LayerRegion, Strategy
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.graph import Node, Operation

_READING = (
    "the library decides by regions, not op by op: this is one region around everything with the "
    f"policy {compute_bound_saveable.keyword}, which holds the same kinds of values, and computes "
    "all others again before the first backward step uses one"
)


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

    def elsewhere(self, count: int) -> Elsewhere | None:
        """One region around everything, under the same marks as a policy. A class that decides
        otherwise has no counterpart.
        """
        if type(self).recomputes is not BalancedCheckpointing.recomputes:
            return None
        return Elsewhere([LayerRegion(count, compute_bound_saveable)], _READING)
