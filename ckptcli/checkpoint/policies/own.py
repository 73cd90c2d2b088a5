"""A policy of the user's own: any function of a `ValueInfo`, of which nothing else is known."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class OwnPolicy(BasePolicy):
    """The function, with what there is to tell of it."""

    keyword: ClassVar[str] = ""
    summary: ClassVar[str] = "what the function says"

    function: Policy

    @property
    def is_own(self) -> bool:
        return True

    def __call__(self, value: ValueInfo) -> Answer:
        return self.function(value)

    def in_jax(self, policies: Any) -> Any:
        raise NoCounterpart("the policy is a function of ckpt's values, which JAX has not")

    def in_torch(self, ops: TorchOps) -> frozenset[str] | None:
        raise NoCounterpart("the policy is a function of ckpt's values, which PyTorch has not")


def described(policy: Policy) -> BasePolicy:
    """The policy with what there is to tell of it; itself where it tells."""
    return policy if isinstance(policy, BasePolicy) else OwnPolicy(policy)
