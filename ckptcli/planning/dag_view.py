"""A dag as planners look at it: what leads to a goal, with children, sizes and costs in lists.

Invariant: indices are those of the problem; what leads to no goal has no children and no parents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ckptcli.planning.actions import Action, node_actions
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.dag import DagProblem


class DagView:
    """The part of a dag that is needed.

    Attributes:
        needed: the nodes that lead to a goal, in order.
        parents, children: of each node, (n,).
        cost, size, workspace: of each node, (n,).
    """

    def __init__(self, problem: DagProblem) -> None:
        self.problem = problem
        self.needed: Sequence[int] = problem.needed
        count = len(problem.nodes)
        self.parents: list[tuple[int, ...]] = [()] * count
        self.children: list[list[int]] = [[] for _ in range(count)]
        for v in self.needed:
            self.parents[v] = problem.nodes[v].parents
            for parent in problem.nodes[v].parents:
                self.children[parent].append(v)
        self.cost: list[Number] = [node.cost for node in problem.nodes]
        self.size = [node.size for node in problem.nodes]
        self.workspace = [node.workspace for node in problem.nodes]
        self.is_once = [v in problem.once for v in range(count)]

    @property
    def whole_size(self) -> int:
        """What every value takes together, and the largest workspace: enough for any plan."""
        return sum(self.size) + max(self.workspace)

    def name(self, v: int) -> str:
        """What actions call node `v`."""
        return self.problem.nodes[v].name

    def names(self, nodes: Iterable[int]) -> tuple[str, ...]:
        """The same of several, in order."""
        return tuple(self.name(v) for v in sorted(nodes))

    def schedule(self, moves: Sequence[int]) -> Callable[[], Iterator[Action]]:
        """What gives the actions of moves: `v` computes node v, `~v` frees it."""
        names = [node.name for node in self.problem.nodes]
        return lambda: node_actions(names, moves)

    def peak(self, moves: Iterable[int]) -> int:
        """The most that is resident during the moves, which are possible."""
        live = peak = 0
        for move in moves:
            if move < 0:
                live -= self.size[~move]
            else:
                live += self.size[move]
                peak = max(peak, live + self.workspace[move])
        return peak
