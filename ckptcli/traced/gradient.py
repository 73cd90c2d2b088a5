"""The gradient as a transformation of graphs: what comes out is a traced tensor again.

A checkpoint's leaf is seen through to the graph that it replaced, so the gradient's graph is
the one that the same program without checkpoints has, node for node: equal bits, no entry of a
history, and a second gradient that knows nothing of checkpoints. As in tenferro, it holds the whole
forward.

Invariant: nothing of the differentiated graph is changed; nothing is recursive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcli.errors import InactiveOutputError, OperandError, ShapeError
from ckptcli.traced.history import through
from ckptcli.traced.node import Leaf, Node, ordered
from ckptcli.traced.ops.output import OUTPUT
from ckptcli.traced.tensor import Tensor, operation_of


def grad(output: Tensor, wrt: Tensor) -> Tensor:
    """The gradient of a scalar with respect to a leaf, in the leaf's shape.

    Raises:
        ShapeError: the output is no scalar, that is, not of shape (1,).
        OperandError: `wrt` is no leaf.
        InactiveOutputError: the output does not depend on the leaf.
    """
    if output.shape != (1,):
        raise ShapeError(
            f"grad requires a scalar output, got shape {list(output.shape)}",
            "sum it, or use `vjp` with a cotangent of its shape",
        )
    seed = output.tracer.constant([1.0], output.dtype)
    return _pulled_back([(output, seed)], wrt, "grad")


def vjp(output: Tensor, wrt: Tensor, cotangent: Tensor) -> Tensor:
    """The cotangent of `output` pulled back to a leaf, in the leaf's shape.

    Raises:
        ShapeError: a cotangent of another shape than the output's.
        OperandError: `wrt` is no leaf.
        InactiveOutputError: the output does not depend on the leaf.
    """
    if output.shape != cotangent.shape:
        raise ShapeError(
            f"vjp of an output of shape {list(output.shape)}, got a cotangent of shape "
            f"{list(cotangent.shape)}",
            "give a cotangent of the output's shape",
        )
    return _pulled_back([(output, cotangent)], wrt, "vjp")


def pulled_back(outputs: Sequence[tuple[Tensor, Tensor]], wrt: Tensor) -> Tensor:
    """`vjp` of several outputs at once, each with its cotangent."""
    return _pulled_back(outputs, wrt, "vjp")


def _pulled_back(outputs: Sequence[tuple[Tensor, Tensor]], wrt: Tensor, name: str) -> Tensor:
    leaf = wrt.node
    if not isinstance(leaf, Leaf):
        raise OperandError(
            f"expected traced leaf input, got the output of `{operation_of(leaf).name}`",
            "differentiate with respect to a placeholder, a data leaf or a checkpoint",
        )
    tracer = wrt.tracer
    histories = tracer.rule.merged([output.history for output, _ in outputs])
    graph = _without_checkpoints([output.node for output, _ in outputs], leaf, histories, wrt)
    active: set[Node] = {leaf}
    for node in graph.steps:
        if not active.isdisjoint(node.inputs):
            active.add(node)
    cotangents: dict[Node, Any] = {}
    for (_, cotangent), root in zip(outputs, graph.roots):
        if root in active:
            _add(cotangents, root, cotangent)
    if not cotangents:
        raise InactiveOutputError(
            f"{name} output is inactive for {leaf.label}",
            "no path leads from the output to this leaf",
        )
    for node in reversed(graph.steps):
        if node in active and node in cotangents:
            _step(node, cotangents, active, wrt)
    result: Tensor = cotangents[leaf]
    return result


class _Graph:
    """A graph seen through its checkpoints: its ops in order, and its roots."""

    __slots__ = ("roots", "steps")

    def __init__(self, roots: list[Node], steps: list[Node]) -> None:
        self.roots = roots
        self.steps = steps


def _without_checkpoints(roots: Sequence[Node], stop: Leaf, history: Any, wrt: Tensor) -> _Graph:
    """The graph behind `roots` with the graph of each checkpoint in the place of its leaf.

    Where nothing below an op was a checkpoint the op itself is taken, else a copy of it. A
    checkpoint that is differentiated for, `stop`, is a leaf.
    """
    origin = wrt.tracer.rule.origin(history)
    operands = through(lambda leaf: None if leaf is stop else origin(leaf))
    seen: dict[Node, Node] = {}
    steps: list[Node] = []
    for node in ordered(roots, operands):
        if isinstance(node, Leaf):
            behind = operands(node)
            seen[node] = seen[behind[0]] if behind else node
            continue
        inputs = tuple([seen[n] for n in node.inputs])
        same = all(map(_is, inputs, node.inputs))
        copy = node if same else Node(node.op, inputs, node.params, node.shape, node.dtype)
        seen[node] = copy
        steps.append(copy)
    return _Graph([seen[root] for root in roots], steps)


def _is(left: object, right: object) -> bool:
    return left is right


def _step(node: Node, cotangents: dict[Node, Any], active: set[Node], wrt: Tensor) -> None:
    """Hand the cotangent of one op on to its operands."""
    gradient = cotangents.pop(node)
    if node.op is OUTPUT:
        _add(cotangents.setdefault(node.inputs[0], {}), node.params[0], gradient)
        return
    tracer = wrt.tracer
    output, *inputs = (Tensor(n, None, tracer) for n in (node, *node.inputs))
    for operand, cotangent in zip(
        node.inputs, operation_of(node).vjp(gradient, output, *inputs, *node.params)
    ):
        if cotangent is not None and operand in active:
            _add(cotangents, operand, cotangent)


def _add(cotangents: dict[Any, Any], key: Any, cotangent: Tensor) -> None:
    before = cotangents.get(key)
    cotangents[key] = cotangent if before is None else before + cotangent
