"""`nothing_saveable`: the default of regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from ckptcli.checkpoint.policies.base import BasePolicy, TorchOps, ValueInfo
from ckptcli.checkpoint.policies.registry import register


@final
@register
@dataclass(frozen=True, slots=True)
class NothingSaveable(BasePolicy):
    """Save region inputs alone."""

    keyword: ClassVar[str] = "nothing_saveable"
    summary: ClassVar[str] = "nothing but the inputs of the region; the default"
    answer: ClassVar[bool | None] = False

    def __call__(self, value: ValueInfo) -> bool:
        return False

    def in_jax(self, policies: Any) -> Any:
        return policies.nothing_saveable

    def in_torch(self, ops: TorchOps) -> frozenset[str]:
        return frozenset()


nothing_saveable = NothingSaveable()
