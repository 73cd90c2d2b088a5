"""The nodes of the tape: what an op leaves behind in the forward pass.

A node never holds its own value; the value belongs to whoever needs it (a tensor in the user's
hands, or a consumer that saved it). Dropping the last tensor of an unused graph therefore frees
the graph, without a sweep.

Invariant: a node has one property for life. `recompute` is set once, by the strategy, when the
node is made; every saved or backup entry for the node follows it.

Source: Burn 0.22.1, `burn-autodiff` (graph, requirement, type-state chain of its ops).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from ckptcli.checkpoint.regions import Region

process_node_ids: Callable[[], int] = count().__next__
"""Burn's numbering: one counter for the process, never reset, taken when a tensor is created."""


def fresh_node_ids() -> Callable[[], int]:
    """A numbering of its own that starts at 0, as in a process that has just begun."""
    return count().__next__


class BackedUp:
    """The type of the answer `BACKED_UP`."""

    __slots__ = ()


BACKED_UP = BackedUp()
"""A strategy's answer for a node that is held now and may be computed again later: its consumers
hold its value, and what it is computed from is backed up as well. It is true, as `True` is."""


class OnHost:
    """The type of the answer `ON_HOST`."""

    __slots__ = ()


ON_HOST = OnHost()
"""A strategy's answer for a node whose value goes to the host as soon as it is made: nobody on the
device holds it, and the node's own step has the copy. It is true, as `True` is."""

Answer: TypeAlias = bool | BackedUp | OnHost
"""What a strategy may say of a node."""


class Requirement(Enum):
    """What a node needs from the backward pass."""

    NONE = "None"
    GRAD = "Grad"
    GRAD_IN_BACKWARD = "GradInBackward"


class Bound(Enum):
    """Burn's mark on an op: what limits its speed. An ambiguous op is stored when needed."""

    COMPUTE = "compute"
    MEMORY = "memory"
    AMBIGUOUS = "ambiguous"


class Operation(Protocol):
    """What a node asks of the op that made it; the op table implements it."""

    @property
    def name(self) -> str: ...
    @property
    def memory_bound(self) -> bool: ...
    @property
    def all_tracked(self) -> int: ...
    @property
    def forward(self) -> Callable[..., Any]: ...


class Node:
    """One value of the tape.

    Attributes:
        id: the node's number, taken when the tensor is created.
        order: 0 for a leaf, else 1 + the largest order among all parents, untracked ones too.
        tracked: 1 when a gradient flows through this node, else 0.
        op: the op that made the value; None for a leaf, `CONSUMED` after the backward pass.
        params: the op's static arguments (scalar, dim, mask).
        parents: the operands' nodes in operand order, untracked ones included.
        mask: bit i is set when operand i is tracked; 0 for a leaf, so that a node with a backward
            step has one that is not.
        recompute: True when the value is computed again instead of being held.
        region: the region in which the node was made; None outside of all.
        owner: the region that has to compute the value again; None for a value that is held.
        state: what the op keeps outside the checkpointer (shapes, indices).
        saved: the nodes whose values the backward step retrieves, in retrieval order.
        saved_values: their values, None for one that is recomputed; the step takes them.
        backup_values: the parents' values, from which this node's can be computed again, None for
            one that is recomputed; empty for a node that never is. Of a value that is on the host
            the `HostCopy` alone. The checkpointer takes them.

    There is no `__init__`: the op path makes one node for each op and sets the slots itself,
    which costs a third of a constructor call (`benchmarks/engine.py`, 64 layers of n = 16).
    """

    __slots__ = (
        "backup_values",
        "id",
        "mask",
        "op",
        "order",
        "owner",
        "params",
        "parents",
        "recompute",
        "region",
        "saved",
        "saved_values",
        "state",
        "tracked",
    )

    id: int
    order: int
    tracked: int
    op: Operation | None
    params: Any
    parents: tuple[Node, ...]
    mask: int
    recompute: bool
    region: Region | None
    owner: Region | None
    state: Any
    saved: tuple[Node, ...]
    saved_values: tuple[Any, ...]
    backup_values: tuple[Any, ...]

    @property
    def requirement(self) -> Requirement:
        """Derived: an op output never keeps its gradient, a tracked leaf always does."""
        if not self.tracked:
            return Requirement.NONE
        return Requirement.GRAD if self.op is None else Requirement.GRAD_IN_BACKWARD


def value_of(node: Node) -> Node:
    """The node as its own step saves it: the same value, without what the step saved.

    A node that listed itself would be a cycle, and would keep a dropped graph alive.
    """
    value = Node()
    for name in Node.__slots__:
        if hasattr(node, name):
            setattr(value, name, getattr(node, name))
    value.saved = value.saved_values = value.backup_values = ()
    return value


class _Consumed:
    """The op of a node whose step a backward pass has run."""

    name = "consumed"
    memory_bound = False
    all_tracked = 0

    def forward(self, *_: Any) -> Any:
        raise AssertionError("a consumed node is never computed again")


CONSUMED = _Consumed()


def leaf_node(node_id: int, tracked: int) -> Node:
    """A node without parents. A tracked one keeps its gradient."""
    node = Node()
    node.id = node_id
    node.order = 0
    node.tracked = tracked
    node.op = None
    node.params = None
    node.parents = ()
    node.mask = 0
    node.recompute = False
    node.region = node.owner = None
    node.state = None
    node.saved = node.saved_values = node.backup_values = ()
    return node
