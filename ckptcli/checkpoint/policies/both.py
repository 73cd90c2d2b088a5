"""`save_from_both_policies`: a union, as in JAX."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ckptcli.checkpoint.policies.base import (
    Answer,
    BasePolicy,
    NoCounterpart,
    Policy,
    TorchOps,
    ValueInfo,
)
from ckptcli.checkpoint.policies.own import described
from ckptcli.checkpoint.policies.registry import register
from ckptcli.errors import UsageError


@register
@dataclass(frozen=True, slots=True)
class SaveFromBothPolicies(BasePolicy):
    """Save what either saves. Where both save, the first says where."""

    keyword: ClassVar[str] = "save_from_both_policies"
    summary: ClassVar[str] = "what P saves and what Q saves: a union, as in JAX"

    first: Policy
    second: Policy

    @classmethod
    def parse(
        cls, arguments: Sequence[ast.expr], policy_of: Callable[[ast.expr], Policy]
    ) -> SaveFromBothPolicies:
        if len(arguments) != 2:
            raise UsageError(f"policy `{cls.keyword}` takes two policies, got {len(arguments)}")
        return cls(*map(policy_of, arguments))

    def __call__(self, value: ValueInfo) -> Answer:
        return self.first(value) or self.second(value)

    @property
    def _parts(self) -> tuple[BasePolicy, BasePolicy]:
        return described(self.first), described(self.second)

    def names(self) -> frozenset[str]:
        first, second = self._parts
        return first.names() | second.names()

    @property
    def moves_to_host(self) -> bool:
        return any(part.moves_to_host for part in self._parts)

    @property
    def is_own(self) -> bool:
        return any(part.is_own for part in self._parts)

    def in_jax(self, policies: Any) -> Any:
        if self.moves_to_host:
            raise NoCounterpart("JAX makes no union with a policy that moves values to the host")
        return policies.save_from_both_policies(*(part.in_jax(policies) for part in self._parts))

    def in_torch(self, ops: TorchOps) -> frozenset[str] | None:
        first, second = (part.in_torch(ops) for part in self._parts)
        return None if first is None or second is None else first | second


def save_from_both_policies(first: Policy, second: Policy) -> SaveFromBothPolicies:
    """Save what either saves: a union, as in JAX. Where both save, the first says where."""
    return SaveFromBothPolicies(first, second)
