"""From a graph to a flat list of instructions, prepared once and run as often as wanted.

A value is let go of after its last use. Nothing is recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ckptcli.backends.base import Backend
from ckptcli.errors import BindingError, ShapeError
from ckptcli.traced.node import Leaf, Node, ordered

if TYPE_CHECKING:
    from ckptcli.traced.tensor import Tensor

Bindings = Sequence[tuple["Tensor", Any]]
"""Placeholders with their data, anything that the backend makes an array of."""


class Instruction(NamedTuple):
    """One op of a program: where its operands lie, where its result goes, what ends with it."""

    forward: Callable[..., Any]
    operands: tuple[int, ...]
    params: tuple[Any, ...]
    result: int
    last_uses: tuple[int, ...]


class Program:
    """A compiled graph.

    Attributes:
        instructions: the ops in order; each slot is written once.
    """

    __slots__ = ("_backend", "_placeholders", "_roots", "_start", "_supplies", "instructions")

    def __init__(
        self, backend: Backend, roots: Sequence[Node], supplies: Sequence[Node] = ()
    ) -> None:
        """`supplies` are inner values that `run` is handed instead of computing them."""
        outside = frozenset(supplies)
        order = ordered(roots, lambda node: () if node in outside else node.inputs)
        slots = {node: slot for slot, node in enumerate(order)}
        calls = [node for node in order if node.op is not None and node not in outside]
        self._backend = backend
        self._roots = [slots[root] for root in roots]
        self._supplies = [slots.get(node) for node in supplies]
        self._start = [node.data if isinstance(node, Leaf) else None for node in order]
        self._placeholders = [
            (slots[node], node)
            for node in order
            if isinstance(node, Leaf) and node.data is None and node not in outside
        ]
        self.instructions = _instructions(calls, slots, set(self._roots))

    def run(self, bindings: Bindings = (), supplies: Sequence[Any] = ()) -> list[Any]:
        """The backend's arrays of the roots; `supplies` are the arrays of the
        inner values that it was compiled with, in order.

        Raises:
            BindingError: a placeholder without data or bound twice, or a binding of another tensor.
            ShapeError: data in another shape than its placeholder's.
        """
        values = self._start.copy()
        if bindings or self._placeholders:
            self._bind(values, bindings)
        for slot, array in zip(self._supplies, supplies):
            if slot is not None:
                values[slot] = array
        namespace = self._backend.namespace
        for forward, operands, params, result, last_uses in self.instructions:
            values[result] = forward(namespace, *[values[slot] for slot in operands], *params)
            for slot in last_uses:
                values[slot] = None
        return [values[slot] for slot in self._roots]

    def _bind(self, values: list[Any], bindings: Bindings) -> None:
        bound: dict[Leaf, Any] = {}
        for index, (tensor, data) in enumerate(bindings):
            leaf = tensor.node
            if not isinstance(leaf, Leaf) or leaf.data is not None:
                raise BindingError(
                    f"binding #{index} is not a placeholder; only tensors built via "
                    "input_concrete_shape / input_symbolic_shape can be bound",
                    "these are tenferro's names; here it is `Tracer.input`",
                )
            if leaf in bound:
                raise BindingError(
                    f"placeholder {leaf.label} was bound more than once", "bind it once"
                )
            bound[leaf] = self._array(leaf, data)
        for slot, leaf in self._placeholders:
            if leaf not in bound:
                raise BindingError(
                    f"placeholder {leaf.label} has no runtime input binding",
                    "bind it in `evaluate`; a `checkpoint` runs now and takes data leaves alone",
                )
            values[slot] = bound[leaf]

    def _array(self, leaf: Leaf, data: Any) -> Any:
        array = self._backend.asarray(data, leaf.dtype, copy=False)
        if tuple(array.shape) != leaf.shape:
            raise ShapeError(
                f"placeholder {leaf.label} has shape {list(leaf.shape)}, "
                f"its data {list(array.shape)}",
                "bind data of the placeholder's shape",
            )
        return array


def instruction_count(outputs: Sequence[Tensor]) -> int:
    """How many instructions a program of these outputs has, counted without making it."""
    return sum(node.op is not None for node in ordered([output.node for output in outputs]))


def _instructions(
    calls: Sequence[Node], slots: dict[Node, int], kept: set[int]
) -> list[Instruction]:
    """The ops in order, each with the slots that nothing after it reads."""
    last: dict[int, int] = {}
    for index, call in enumerate(calls):
        for node in call.inputs:
            last[slots[node]] = index
    ending: list[list[int]] = [[] for _ in calls]
    for slot, index in last.items():
        if slot not in kept:
            ending[index].append(slot)
    return [
        Instruction(
            call.op.forward,  # type: ignore[union-attr]  # a call has an op
            tuple([slots[node] for node in call.inputs]),
            call.params,
            slots[call],
            tuple(ends),
        )
        for call, ends in zip(calls, ending)
    ]


class Compiler:
    """Makes programs for one backend, and counts them."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.compiled = 0

    def compile(self, outputs: Sequence[Tensor], supplies: Sequence[Node] = ()) -> Program:
        """A program for several outputs, with the values of `supplies` handed to each run."""
        self.compiled += 1
        return Program(self.backend, [output.node for output in outputs], supplies)
