"""A value as a policy is asked about it before it has a name: who looks for the name is noted.

A value gets its name after it is made. A policy that looked for one in vain is asked again then;
one that did not has given its answer, so that a policy that counts counts each value once.

Invariant: to the policy it is a `ValueInfo` like any other.
"""

from __future__ import annotations

from typing import Any

from ckptcli.checkpoint.policies.base import ValueInfo

_NAME: Any = ValueInfo.__dict__["name"]


class AskedValue(ValueInfo):
    """`looked` is whether the name was asked for since it was set to False."""

    __slots__ = ("looked",)

    looked: bool

    def __init__(
        self, op: str, name: str | None, batch_dims: int, params: Any, memory_bound: bool = False
    ) -> None:
        told = {"op": op, "batch_dims": batch_dims, "params": params, "memory_bound": memory_bound}
        for slot, value in told.items():
            object.__setattr__(self, slot, value)
        _NAME.__set__(self, name)
        self.forget()

    @property
    def name(self) -> str | None:
        object.__setattr__(self, "looked", True)
        name: str | None = _NAME.__get__(self)
        return name

    def forget(self) -> None:
        """Let nobody have looked so far."""
        object.__setattr__(self, "looked", False)
