"""A graph of values: what each costs, how large it is, what it is made of.

Memory: a node's output has a size. Computing it needs all its parents resident, and its size and
its workspace free beside everything that is. Freeing costs nothing. A goal must be computed at
least once; one of `keep` stays from its first computation to the end. A node of `once` is computed
once at most, which is how gradients are; any other as often as it pays.

Invariant: nodes stand after their parents, names are unique, indices are those of `nodes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, ClassVar

from ckptcli.planning.problems.base import Number, reads
from ckptcli.planning.problems.fields import Fields, cost_of, name_of, shown, size_of
from ckptcli.units import count


@dataclass(frozen=True, slots=True)
class Node:
    """A value.

    Attributes:
        name: what actions call it.
        cost: of computing it.
        size: of the value, in the unit of the budget.
        parents: the indices of what it is made of, each once.
        workspace: what computing it takes beside its operands and its output.
    """

    name: str
    cost: Number
    size: int
    parents: tuple[int, ...] = ()
    workspace: int = 0


@dataclass(frozen=True, slots=True)
class DagProblem:
    """A graph of values.

    Attributes:
        nodes: every value, after its parents.
        goals: indices of what must be computed.
        keep: indices of goals that stay.
        once: indices of what may not be computed again.
    """

    nodes: tuple[Node, ...]
    goals: frozenset[int]
    keep: frozenset[int] = frozenset()
    once: frozenset[int] = frozenset()

    kind: ClassVar[str] = "dag"
    unit: ClassVar[str] = "unit of memory"

    @property
    def needed(self) -> list[int]:
        """The nodes that lead to a goal, in order."""
        needed = set(self.goals)
        for index in range(len(self.nodes) - 1, -1, -1):
            if index in needed:
                needed.update(self.nodes[index].parents)
        return sorted(needed)

    @property
    def base_cost(self) -> Number:
        """The cost of every node that leads to a goal."""
        return sum(self.nodes[index].cost for index in self.needed)

    @property
    def title(self) -> str:
        """`dag of 72 nodes`."""
        return f"dag of {count(len(self.nodes), 'node')}"


@reads("dag")
def read_dag(fields: Fields) -> DagProblem:
    """`nodes`: [name, cost, size, parents, workspace] each, the last may be left out."""
    entries = [_entry(fields, i, entry) for i, entry in enumerate(fields.list("nodes"))]
    if not entries:
        fields.fail("`nodes` is empty", "a dag has at least one node")
    places: dict[str, int] = {}
    for i, (name, *_) in enumerate(entries):
        if name in places:
            fields.fail(f"nodes {places[name]} and {i} are both called {shown(name)}")
        places[name] = i
    parents = [
        tuple(dict.fromkeys(_index(fields, places, f"node {shown(entry[0])}", p) for p in entry[3]))
        for entry in entries
    ]
    order = _in_order(fields, [entry[0] for entry in entries], parents)
    moved = {old: new for new, old in enumerate(order)}
    nodes = []
    for old in order:
        name, cost, size, _, workspace = entries[old]
        nodes.append(Node(name, cost, size, tuple(moved[p] for p in parents[old]), workspace))
    named = {
        key: frozenset(moved[_index(fields, places, f"`{key}`", n)] for n in fields.names(key))
        for key in ("goals", "keep", "once")
    }
    goals = named["goals"] | named["keep"]
    if not goals:
        fields.fail("`goals` names no node", "name what has to be computed")
    return DagProblem(tuple(nodes), goals, named["keep"], named["once"])


def _entry(fields: Fields, i: int, entry: Any) -> tuple[str, Number, int, Sequence[str], int]:
    if not isinstance(entry, list) or len(entry) not in (4, 5):
        fields.fail(f"node {i} must be [name, cost, size, parents, workspace], got {shown(entry)}")
    name = name_of(fields, f"the name of node {i}", entry[0])
    of = f"of node {shown(name)}"
    if not isinstance(entry[3], list):
        fields.fail(f"the parents {of} must be a list of names, got {shown(entry[3])}")
    return (
        name,
        cost_of(fields, f"the cost {of}", entry[1]),
        size_of(fields, f"the size {of}", entry[2]),
        [name_of(fields, f"a parent {of}", parent) for parent in entry[3]],
        size_of(fields, f"the workspace {of}", entry[4]) if len(entry) == 5 else 0,
    )


def _index(fields: Fields, places: Mapping[str, int], whose: str, name: str) -> int:
    if name not in places:
        fields.fail(f"{whose} refers to {shown(name)}, which is no node")
    return places[name]


def _in_order(fields: Fields, names: Sequence[str], parents: Sequence[Sequence[int]]) -> list[int]:
    """The nodes after their parents, otherwise as they are listed.

    Raises:
        ProblemFileError: a node leads to itself.
    """
    children: list[list[int]] = [[] for _ in names]
    waiting = [len(of) for of in parents]
    for child, of in enumerate(parents):
        for parent in of:
            children[parent].append(child)
    ready = [i for i, count in enumerate(waiting) if not count]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready))
        for child in children[order[-1]]:
            waiting[child] -= 1
            if not waiting[child]:
                heappush(ready, child)
    if len(order) < len(names):
        cycle = _cycle(parents, {i for i, count in enumerate(waiting) if count})
        path = " <- ".join(shown(names[i]) for i in cycle)
        fields.fail(f"the nodes {path} form a cycle", "a node must not lead to itself")
    return order


def _cycle(parents: Sequence[Sequence[int]], stuck: Iterable[int]) -> list[int]:
    """A walk from one of the stuck nodes along parents that ends where it began, shortened."""
    left = set(stuck)
    walk: list[int] = []
    seen: dict[int, int] = {}
    here = min(left)
    while here not in seen:
        seen[here] = len(walk)
        walk.append(here)
        here = next(parent for parent in parents[here] if parent in left)
    cycle = [*walk[seen[here] :], here]
    return cycle if len(cycle) <= 6 else [*cycle[:3], *cycle[-2:]]
