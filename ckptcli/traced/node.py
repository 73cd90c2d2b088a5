"""A node of a traced graph, and the order in which to visit nodes.

Invariant: a node refers to its operands and never the other way, so a graph is freed by reference
counts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcli.traced.op import Op

Shape = tuple[int, ...]


class Node:
    """One value of a graph: an op applied to operands, or a leaf.

    Attributes:
        op: what computes it; None for a leaf.
        inputs: its operands.
        params: the op's static arguments.
        shape: of rank 1 or more; () for a value of several arrays, which `output` takes apart.
        dtype: the name of the element type.
    """

    __slots__ = ("dtype", "inputs", "op", "params", "shape")

    def __init__(
        self,
        op: Op | None,
        inputs: tuple[Node, ...],
        params: tuple[Any, ...],
        shape: Shape,
        dtype: str,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.params = params
        self.shape = shape
        self.dtype = dtype


class Leaf(Node):
    """A value from outside: data, or a placeholder that gets it when the graph is evaluated.

    Attributes:
        key: the number that errors name, `User { id: 0 }`; None for a constant.
        data: the backend's array; None for a placeholder.
        origin: the graph that a checkpoint evaluated to `data`, where the leaf itself has to know.
    """

    __slots__ = ("data", "key", "origin")

    def __init__(self, key: int | None, data: Any, shape: Shape, dtype: str) -> None:
        super().__init__(None, (), (), shape, dtype)
        self.key = key
        self.data = data
        self.origin: Node | None = None

    @property
    def label(self) -> str:
        """How messages name the leaf, in tenferro's words."""
        return "a constant" if self.key is None else f"User {{ id: {self.key} }}"


def ordered(
    roots: Iterable[Node], operands: Callable[[Node], Sequence[Node]] = lambda node: node.inputs
) -> list[Node]:
    """Every node behind `roots`, operands before what uses them.

    Depth first with a stack of its own: linear in the edges, no recursion.
    """
    done: set[Node] = set()
    order: list[Node] = []
    stack = list(roots)[::-1]
    while stack:
        node = stack[-1]
        pending = () if node in done else [n for n in operands(node) if n not in done]
        if pending:
            stack.extend(pending[::-1])
            continue
        stack.pop()
        if node not in done:
            done.add(node)
            order.append(node)
    return order
