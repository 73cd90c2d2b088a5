"""Steps of a loop prepared once, each a program forward and a program backward.

A step takes the loop's state to the next state and a term, a scalar. Its backward program takes the
cotangents of both to the cotangent of the state. What it takes besides says which segment it is:

- *replay* (tenferro's traced segments): the state alone; the program carries the step's forward.
- *residuals* (eager segments): the values that the forward program also hands out.

Invariant: either gives the bits of the other, since both run the same ops on the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ckptcli.traced.gradient import pulled_back
from ckptcli.traced.node import Node, Shape, ordered
from ckptcli.traced.program import Program
from ckptcli.traced.tensor import Tensor
from ckptcli.traced.tracer import Tracer

StepFunction = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From the state to the next state and a term."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One step, prepared.

    Attributes:
        state: the placeholder of the state.
        cotangents: the placeholders of the cotangents of the next state and of the term.
        value: the next state and the term.
        forward: the next state, the term, and what `backward` is given.
        backward: the cotangent of the state.
    """

    state: Tensor
    cotangents: tuple[Tensor, Tensor]
    value: Program
    forward: Program
    backward: Program


def prepared(
    tracer: Tracer, function: StepFunction, shape: Shape, *, keep_residuals: bool
) -> Segment:
    """The segment of a step whose state has this shape."""
    state = tracer.input(shape)
    following, term = function(state)
    cotangents = tracer.input(following.shape), tracer.input(term.shape)
    gradient = pulled_back(list(zip((following, term), cotangents)), state)
    residuals = _residuals(state, [following, term], gradient) if keep_residuals else []
    outputs = [following, term, *(Tensor(node, None, tracer) for node in residuals)]
    return Segment(
        state,
        cotangents,
        tracer.compiler.compile([following, term]),
        tracer.compiler.compile(outputs),
        tracer.compiler.compile([gradient], residuals),
    )


def _residuals(state: Tensor, outputs: Sequence[Tensor], gradient: Tensor) -> list[Node]:
    """The values of the forward that an op of the backward alone takes as operand."""
    forward = {node for node in ordered([t.node for t in outputs]) if node.op is not None}
    forward.add(state.node)
    values: dict[Node, None] = {}
    for node in ordered([gradient.node], lambda n: () if n in forward else n.inputs):
        if node not in forward:
            values.update(dict.fromkeys(n for n in node.inputs if n in forward))
    return list(values)


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep over the segments gives.

    Attributes:
        value: the weighted sum of the terms.
        gradient: with respect to the first state, the backend's array; None if not asked for.
        kept: what was held while other segments ran, the backend's arrays or tuples of them; the
            last segment's backward follows its forward at once, so nothing of it is kept.
    """

    value: float
    gradient: Any
    kept: list[Any]


class Loop:
    """Segments one after the other; the value is the weighted sum of their terms.

    The last state does not count but through its term.
    """

    def __init__(
        self, tracer: Tracer, segments: Sequence[Segment], weights: Sequence[float]
    ) -> None:
        self.tracer = tracer
        self.segments = list(segments)
        self.weights = list(weights)

    def value(self, state: Any) -> Swept:
        """The value alone."""
        total = 0.0
        for segment, weight in zip(self.segments, self.weights):
            state, term = segment.value.run([(segment.state, state)])
            total += weight * self._number(term)
        return Swept(total, None, [])

    def value_and_gradient(self, state: Any) -> Swept:
        """The value, and its gradient with respect to the first state."""
        total = 0.0
        kept: list[tuple[Any, list[Any]]] = []
        for segment, weight in zip(self.segments, self.weights):
            following, term, *residuals = segment.forward.run([(segment.state, state)])
            kept.append((state, residuals))
            state = following
            total += weight * self._number(term)
        held = [value for first, others in kept[:-1] for value in (others or [first])]
        cotangent = self.tracer.backend.namespace.zeros_like(state)
        for segment, weight in zip(self.segments[::-1], self.weights[::-1]):
            first, residuals = kept.pop()
            bindings = list(zip(segment.cotangents, (cotangent, [weight])))
            if not residuals:
                bindings.append((segment.state, first))
            (cotangent,) = segment.backward.run(bindings, residuals)
        return Swept(total, cotangent, held)

    def kept_bytes(self, swept: Swept) -> int:
        """The bytes of what a sweep held, each storage once, the first state too."""
        namespace = self.tracer.backend.namespace
        storages: dict[int, int] = {}
        for value in swept.kept:
            for array in value if isinstance(value, tuple) else (value,):
                _, _, storage_bytes = namespace.storage_layout(array)
                storages[namespace.storage_id(array)] = storage_bytes
        return sum(storages.values())

    def _number(self, array: Any) -> float:
        return float(self.tracer.backend.to_numpy(array).item())
