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
    """`looked` is whether the name was asked for."""

    __slots__ = ("looked",)

    looked: bool

    def __init__(
        self, op: str, name: str | None, batch_dims: int, params: Any, memory_bound: bool = False
    ) -> None:
        fill = object.__setattr__
        fill(self, "op", op)
        fill(self, "batch_dims", batch_dims)
        fill(self, "params", params)
        fill(self, "memory_bound", memory_bound)
        fill(self, "looked", False)
        _NAME.__set__(self, name)

    @property
    def name(self) -> str | None:
        object.__setattr__(self, "looked", True)
        name: str | None = _NAME.__get__(self)
        return name
