"""Where the graphs that checkpoints replaced are kept for the gradient, by merge rule.

`shared`: the leaf that a checkpoint makes refers to the graph it replaced. The history of a tensor
is what its own graph reaches, so two operands need no merge, and one checkpoint is one entry.

`copy` is tenferro-ad 0.8.0's: a tensor carries a list of entries, and where operands of an op both
have one, the left list is copied in front of the right one, entry by entry, whatever they share.
`left` is what it did before: the first operand that has a list gives it, the other lists are lost.
`ptr-eq` and `dedup` are the two repairs of `copy` that the seed names and leaves untried: not to
copy a list onto itself, and to copy only entries that the other list lacks.

Gradients are the same under all but `left`: who asks what a leaf stands for gets one answer,
however often the entry is there.

Invariant: a list never gets more than `MOST_ENTRIES` entries; it is counted before it is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ckptcli.errors import HistoryTooLongError, UnknownNameError
from ckptcli.traced.node import Leaf, Node, ordered

MOST_ENTRIES = 10_000_000

Origin = Callable[[Leaf], Node | None]
"""From a leaf to the graph that a checkpoint evaluated to it; None for any other leaf."""


@dataclass(frozen=True, slots=True)
class Count:
    """Entries of a history, and how many distinct graphs they keep."""

    entries: int
    graphs: int


class MergeRule(Protocol):
    """What a tensor's history is, and what an op makes of its operands' histories."""

    @property
    def name(self) -> str: ...

    @property
    def enters_data(self) -> bool:
        """Whether a checkpoint of a leaf with data is an entry too, as in tenferro."""

    def merged(self, histories: Sequence[Any]) -> Any:
        """The history of an op's result; None is the empty history.

        Raises:
            HistoryTooLongError: it would have more than `MOST_ENTRIES` entries.
        """

    def checkpointed(self, history: Any, graph: Node, leaf: Leaf) -> Any:
        """The history after `leaf` has taken the place of `graph`."""

    def origin(self, history: Any) -> Origin:
        """What the gradient finds behind a leaf."""

    def count(self, history: Any, node: Node) -> Count:
        """The entries of a tensor at `node`, counted by a walk."""


class SharedHistory:
    """The history is the graph itself."""

    name = "shared"
    enters_data = False

    def merged(self, histories: Sequence[Any]) -> None:
        return None

    def checkpointed(self, history: None, graph: Node, leaf: Leaf) -> None:
        leaf.origin = graph

    def origin(self, history: None) -> Origin:
        return lambda leaf: leaf.origin

    def count(self, history: None, node: Node) -> Count:
        behind = ordered([node], through(self.origin(history)))
        graphs = [n.origin for n in behind if isinstance(n, Leaf) and n.origin is not None]
        return Count(len(graphs), len(set(graphs)))


class Entry:
    """One link of a list: the graph that was replaced, the leaf in its place, and the next link."""

    __slots__ = ("graph", "leaf", "previous")

    def __init__(self, graph: Node, leaf: Leaf, previous: Entry | None) -> None:
        self.graph = graph
        self.leaf = leaf
        self.previous = previous


@dataclass(frozen=True, slots=True)
class Chain:
    """A list of entries, newest first, and its length."""

    head: Entry
    length: int

    def entries(self) -> Iterator[Entry]:
        """Newest first."""
        entry: Entry | None = self.head
        while entry is not None:
            yield entry
            entry = entry.previous


class _ChainHistory:
    """What the rules with a list on each tensor have in common."""

    name = ""
    enters_data = True

    def checkpointed(self, history: Chain | None, graph: Node, leaf: Leaf) -> Chain:
        length = _checked(1 + (history.length if history else 0), self.name)
        return Chain(Entry(graph, leaf, history.head if history else None), length)

    def origin(self, history: Chain | None) -> Origin:
        graphs = {e.leaf: e.graph for e in history.entries()} if history else {}
        return graphs.get

    def count(self, history: Chain | None, node: Node) -> Count:
        graphs = [entry.graph for entry in history.entries()] if history else []
        return Count(len(graphs), len(set(graphs)))


class CopiedHistory(_ChainHistory):
    """The left list copied onto the right one, whatever the two share.

    A list that meets itself doubles: y * y has 2^n - 1 entries after n rounds, a step of the TRG
    multiplies them by 24.
    """

    name = "copy"

    def merged(self, histories: Sequence[Chain | None]) -> Chain | None:
        result: Chain | None = None
        for history in histories:
            result = self.joined(result, history) if result and history else result or history
        return result

    def joined(self, left: Chain, right: Chain) -> Chain:
        """The history of an op whose operands have these two."""
        return self.on_top(left.entries(), left.length, right)

    def on_top(self, entries: Iterable[Entry], length: int, right: Chain) -> Chain:
        """`length` entries once more, in their order, in front of `right`."""
        total = _checked(length + right.length, self.name)
        head = right.head
        for entry in list(entries)[::-1]:
            head = Entry(entry.graph, entry.leaf, head)
        return Chain(head, total)


class IdenticalHistory(CopiedHistory):
    """The left list copied onto the right one, unless both are one and the same.

    What the seed says has to be done at least, `Arc::ptr_eq(&lhs_head, &rhs_head)`: a comparison of
    two pointers. One tensor used twice is one list, so y * y and a step of the TRG add an entry a
    round. Lists with a common tail are two lists: the terms of lnZ/N have the first 1, 2, ... n
    entries, whose sum has n (n + 1) / 2.
    """

    name = "ptr-eq"

    def joined(self, left: Chain, right: Chain) -> Chain:
        return right if left.head is right.head else super().joined(left, right)


class DistinctHistory(CopiedHistory):
    """Those entries of the left list copied onto the right one that it lacks, by their leaves.

    The seed's full repair, by `alias_key`: a leaf is there once, so that there are as many entries
    as checkpoints. Looking for them takes time in proportion to both lists, for every op whose
    operands have two; one list on both sides is told by its head, as under `ptr-eq`.
    """

    name = "dedup"

    def joined(self, left: Chain, right: Chain) -> Chain:
        if left.head is right.head:
            return right
        there = {entry.leaf for entry in right.entries()}
        missing = [entry for entry in left.entries() if entry.leaf not in there]
        return self.on_top(missing, len(missing), right) if missing else right


class LeftHistory(_ChainHistory):
    """The first operand's list, and nothing of the others."""

    name = "left"

    def merged(self, histories: Sequence[Chain | None]) -> Chain | None:
        return next((history for history in histories if history), None)


def _checked(length: int, rule: str) -> int:
    if length > MOST_ENTRIES:
        raise HistoryTooLongError(
            f"the history of checkpoints would get {length:,} entries, the most is "
            f"{MOST_ENTRIES:,}: merge rule `{rule}` copies the left operand's list for every op",
            "use fewer rounds, or merge rule `shared`, which keeps one entry a checkpoint",
        )
    return length


def through(origin: Origin) -> Callable[[Node], Sequence[Node]]:
    """The operands of a node, where a checkpoint's leaf has the graph behind it as operand."""

    def operands(node: Node) -> Sequence[Node]:
        if not isinstance(node, Leaf):
            return node.inputs
        graph = origin(node)
        return () if graph is None else (graph,)

    return operands


RULES: dict[str, Callable[[], MergeRule]] = {
    rule.name: rule
    for rule in (SharedHistory, CopiedHistory, IdenticalHistory, DistinctHistory, LeftHistory)
}


def merge_rule(name: str) -> MergeRule:
    """The rule called `name`.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in RULES:
        raise UnknownNameError("merge rule", name, RULES)
    return RULES[name]()
