"""A region: a part of the forward pass that is recomputed as one, from its inputs.

While a region is open, every op makes a node that belongs to it. A value of the region that its
policy does not save is computed again in the backward pass; what others use of it is held. The
inner-most region owns its values: seen from the region around it they are recomputed once more.

Invariants: when the outer-most region closes, its nodes hold exactly the values from outside it
that its recomputation may need; every node has become one that is held when somebody else uses it.
A backward pass takes what its own steps hold, and leaves the rest of the region to other passes.

Source: JAX `jax.checkpoint` (what is saved), PyTorch's rules for nested non-reentrant checkpoints
(who owns a value).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptcli.backends.host_copy import HostCopy
from ckptcli.checkpoint.policies import OFFLOAD, Policy, described
from ckptcli.checkpoint.policies.asked import AskedValue
from ckptcli.checkpoint.policies.base import Answer
from ckptcli.events import RegionClosed
from ckptcli.graph import Node


class Region:
    """One region, open or closed.

    Attributes:
        name: for logs and messages.
        policy: which values may be saved; asked once for each value, and again when it gets a name
            if it looked for one.
        is_asked: whether the policy may save anything at all.
        parent: the region around it.
        depth: 1 for the outer-most.
        number: in the order in which an outer-most region and those inside it are opened.
        last_inside: the number of the last region that was opened inside; known once it is closed.
        opened: (outer-most only) how many regions were opened so far.
        saved_ids: the values that this region's policy saves.
        settled_ids: the values that it does not save, whatever they are named.
        nodes: every node made inside the outer-most region around it, which all inside it share.
        held: (outer-most only) node id -> value that got its name after it was made: ops that had
            used it before find it here; and what is offloaded.
        offloaded_ids: (outer-most only) the values that are saved on the host.
    """

    __slots__ = (
        "_answer",
        "_outermost",
        "depth",
        "held",
        "is_asked",
        "last_inside",
        "name",
        "nodes",
        "number",
        "offloaded_ids",
        "opened",
        "parent",
        "policy",
        "saved_ids",
        "settled_ids",
    )

    def __init__(self, name: str, policy: Policy, parent: Region | None) -> None:
        self.name = name
        self.policy = policy
        self._answer = described(policy).answer
        self.is_asked = self._answer is not False
        self.parent = parent
        self._outermost: Region | None = None
        self.nodes: list[Node] = []
        self.depth = self.opened = 1
        self.number = 0
        if parent is not None:
            root = self._outermost = parent.root
            self.nodes = parent.nodes
            self.depth = parent.depth + 1
            self.number = root.opened
            root.opened += 1
        self.last_inside: int | None = None
        self.saved_ids: set[int] = set()
        self.settled_ids: set[int] = set()
        self.held: dict[int, Any] = {}
        self.offloaded_ids: set[int] = set()

    @property
    def root(self) -> Region:
        """The outer-most region; kept without a reference to itself, which would be a cycle."""
        return self if self._outermost is None else self._outermost

    def end(self) -> None:
        """No region is opened inside this one any more."""
        self.last_inside = self.root.opened - 1

    def contains(self, other: Region) -> bool:
        """Whether `other` is this region or inside it; the depth of either costs nothing."""
        if other.root is not self.root or other.number < self.number:
            return False
        return self.last_inside is None or other.number <= self.last_inside

    def recomputes(self, node: Node) -> bool:
        """Whether the value of a node made in this region is computed again; registers the node."""
        self.nodes.append(node)
        owner = node.owner = self._owner_after(node) if self.is_asked else self
        return owner is not None

    def _owner_after(self, node: Node, name: str | None = None) -> Region | None:
        """Ask the policies from here outward; the first that does not save is the owner's."""
        region: Region | None = self
        while region is not None and region._saves(node, name):
            region = region.parent
        return region

    def _saves(self, node: Node, name: str | None) -> bool:
        """Whether the policy of this very region saves the value, asked if it has to be."""
        if not self.is_asked or node.id in self.settled_ids:
            return False
        if node.id in self.saved_ids:
            return True
        answer: Answer | None = self._answer
        if answer is None:
            info = AskedValue.of(node, name)
            answer = self.policy(info)
            if not answer:
                if not info.looked:
                    self.settled_ids.add(node.id)
                return False
            if answer == OFFLOAD:
                self.root.offloaded_ids.add(node.id)
        self.saved_ids.add(node.id)
        return True

    def name_value(self, node: Node, name: str, value: Any) -> None:
        """Give a value of this region a name; policies that looked for one are asked again.

        A name means the value itself: whoever uses it, its producer's own backward included, finds
        it saved.
        """
        region = node.region
        if region is None or not region.is_asked or not node.recompute:
            return
        if region.root is not self.root:
            return
        owner = region._owner_after(node, name)
        if owner is node.owner:
            return
        for entry in (node, *node.saved):
            if entry.id == node.id:  # the node, or the value as its own step saves it
                entry.owner = owner
                entry.recompute = owner is not None
        if owner is None:
            self.root.held[node.id] = value

    def closed(self) -> RegionClosed:
        """What there is to tell of a region that is about to be closed."""
        return RegionClosed(
            self.name,
            self.depth,
            tuple(sorted(self.saved_ids)),
            tuple(sorted(described(self.policy).names())),
            tuple(node.id for node in self.nodes) if self.parent is None else (),
            described(self.policy).is_own,
        )

    def close(
        self,
        let_go: Callable[[list[Node]], set[int]],
        to_host: Callable[[Any], HostCopy],
    ) -> None:
        """(Outer-most only) keep what may be needed from outside, and let go of everything else.

        What is to be offloaded is held here alone, on the host.
        """
        if self.offloaded_ids:
            self._collect_offloaded()
        needed = let_go(self.nodes)
        if self.held:
            self.held = {
                node_id: to_host(value) if node_id in self.offloaded_ids else value
                for node_id, value in self.held.items()
                if node_id in needed
            }
        self.nodes.clear()

    def _collect_offloaded(self) -> None:
        """Move the values that are to be offloaded from the nodes to `held`."""
        self.offloaded_ids = {
            node.id
            for node in self.nodes
            if node.id in self.offloaded_ids and node.tracked and node.owner is None
        }
        for node in self.nodes:
            if node.saved:
                node.saved_values = self._without_offloaded(node.saved, node.saved_values)
            if node.backup_values:
                node.backup_values = self._without_offloaded(node.parents, node.backup_values)

    def _without_offloaded(
        self, nodes: tuple[Node, ...], values: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        kept = []
        for node, value in zip(nodes, values):
            is_offloaded = value is not None and node.id in self.offloaded_ids
            if is_offloaded:
                self.held.setdefault(node.id, value)
            kept.append(None if is_offloaded else value)
        return tuple(kept)

    def take_held(self, node: Node) -> Any | None:
        """What `held` has for `node`, if anything; a constant's value stays for other passes."""
        held = self.root.held
        return held.pop(node.id, None) if node.tracked else held.get(node.id)

    def __repr__(self) -> str:
        return f"Region({self.name!r}, depth={self.depth})"


def common_region(first: Region | None, second: Region | None) -> Region | None:
    """The inner-most region that contains both; None if only the whole program does."""
    while first is not second:
        if first is None or second is None:
            return None
        if first.depth >= second.depth:
            first = first.parent
        else:
            second = second.parent
    return first
