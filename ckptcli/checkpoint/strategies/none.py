"""`none`: Burn's `NoCheckpointing`. Everything that the backward pass needs is held."""

from __future__ import annotations

from typing import ClassVar

from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import register


@register
class NoCheckpointing(Strategy):
    """Treats every op as compute bound: its output is held when needed, no parent is backed up."""

    keyword: ClassVar[str] = "none"
    summary: ClassVar[str] = "hold every value that the backward pass needs (Burn's default)"
    label: ClassVar[str] = "Disabled"
