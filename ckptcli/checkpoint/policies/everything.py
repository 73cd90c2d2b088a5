"""`everything_saveable`: a region that has no effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from ckptcli.checkpoint.policies.base import BasePolicy, TorchOps, ValueInfo
from ckptcli.checkpoint.policies.registry import register


@final
@register
@dataclass(frozen=True, slots=True)
class EverythingSaveable(BasePolicy):
    """Save whatever is needed."""

    keyword: ClassVar[str] = "everything_saveable"
    summary: ClassVar[str] = "whatever is needed: the region has no effect"
    answer: ClassVar[bool | None] = True

    def __call__(self, value: ValueInfo) -> bool:
        return True

    def in_jax(self, policies: Any) -> Any:
        return policies.everything_saveable

    def in_torch(self, ops: TorchOps) -> None:
        return None


everything_saveable = EverythingSaveable()
