"""What a policy is: an answer for each value, what it mentions, and what it is elsewhere.

A policy is asked for each value and answers whether it *may* be saved; a value is saved only if the
backward pass needs it. Region inputs are always available. Any function of a `ValueInfo` is one;
those with a name on the command line derive from `BasePolicy` and register themselves.

Invariant: a policy is data. It imports neither PyTorch nor JAX; what it is there it takes from what
it is handed.

Source: JAX `jax.checkpoint_policies`; `docs/policies.md` says what differs: a name means the value
itself.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from ckptcli.checkpoint.policies.grammar import name_of
from ckptcli.errors import UsageError
from ckptcli.graph import Node

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """What a policy is told of a value: never the value itself.

    Attributes:
        op: the op that made it.
        name: its name, if it has one.
        batch_dims: leading dims over which a product is repeated, counted from the last, as
            broadcasting does.
        memory_bound: Burn's mark on the op.
    """

    op: str
    name: str | None
    batch_dims: int
    params: Any
    memory_bound: bool = False

    @classmethod
    def of(cls, node: Node, name: str | None = None) -> Self:
        """What can be told of the value of `node`."""
        op = node.op
        assert op is not None
        batch_dims = getattr(node.params, "batch_dims", 0)
        return cls(op.name, name, batch_dims, node.params, op.memory_bound)


OFFLOAD: Literal["offload"] = "offload"
"""The answer of a policy that saves a value in the host's memory."""

Answer: TypeAlias = bool | Literal["offload"]
Policy: TypeAlias = Callable[[ValueInfo], Answer]


class NoCounterpart(Exception):
    """Another library has nothing that does what the policy does; the text says why."""


class TorchOps(Protocol):
    """PyTorch's ops by what they are, each by its name."""

    @property
    def products(self) -> frozenset[str]: ...
    @property
    def batched_products(self) -> frozenset[str]: ...
    @property
    def convolutions(self) -> frozenset[str]: ...
    @property
    def compute_bound(self) -> frozenset[str]:
        """What does what an op does which Burn marks bound by arithmetic, these included."""


class BasePolicy(ABC):
    """Base of all policies that have a name.

    Attributes:
        keyword: the name.
        summary: what it saves, in one line.
        moves_to_host: whether it may answer `OFFLOAD`.
        answer: what it answers for every value, so that nobody has to ask; None if that differs.
    """

    __slots__ = ()

    keyword: ClassVar[str]
    summary: ClassVar[str]
    answer: ClassVar[bool | None] = None

    @abstractmethod
    def __call__(self, value: ValueInfo) -> Answer:
        """Whether the value may be saved, and where."""

    @classmethod
    def parse(
        cls, arguments: Sequence[ast.expr], policy_of: Callable[[ast.expr], Policy]
    ) -> BasePolicy:
        """The policy with these arguments; `policy_of` reads one that is a policy itself.

        Raises:
            UsageError: arguments that it does not take.
        """
        if arguments:
            text = ", ".join(map(name_of, arguments))
            raise UsageError(f"policy `{cls.keyword}` takes no arguments, got `{text}`")
        return cls()

    def names(self) -> frozenset[str]:
        """The names that it mentions."""
        return frozenset()

    @property
    def moves_to_host(self) -> bool:
        return False

    @property
    def is_own(self) -> bool:
        """Whether its answers come from a function of the user's own, so that they may waver."""
        return False

    @abstractmethod
    def in_jax(self, policies: Any) -> Any:
        """What it is among `policies`, which is `jax.checkpoint_policies`.

        Raises:
            NoCounterpart: nothing.
        """

    @abstractmethod
    def in_torch(self, ops: TorchOps) -> frozenset[str] | None:
        """The names of the ops whose outputs selective checkpointing saves; None for all.

        Raises:
            NoCounterpart: it does not go by ops.
        """
