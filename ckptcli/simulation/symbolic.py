"""Arrays without elements, and the namespace and backend that ops call with them.

An op's function is replaced by what was recorded of it: so far do live bytes rise, so large is the
storage that it makes. A storage is an object; it is live until its last reference is gone.

Invariant: the engine above runs as it is; nothing here decides what is held or computed again.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

from ckptcli.autodiff.op import Flow, Op
from ckptcli.backends.base import Array, Backend, Namespace
from ckptcli.backends.host_copy import HostCopy
from ckptcli.backends.random_keys import RandomKey
from ckptcli.graph import Bound
from ckptcli.planning.tape.cost_graph import CostGraph, CostNode, Release, Span, StepItem


class LiveBytes:
    """What is live, and the most since a phase began; what is on the host, and the most of it."""

    __slots__ = (
        "host_bytes",
        "host_peak_bytes",
        "live_bytes",
        "peak_bytes",
        "peak_with_workspace_bytes",
    )

    def __init__(self) -> None:
        self.host_bytes = self.host_peak_bytes = 0
        self.live_bytes = 0
        self.start_phase()

    def start_phase(self) -> None:
        """Begin new peaks at what is live now."""
        self.peak_bytes = self.peak_with_workspace_bytes = self.live_bytes

    def take_host(self, copied: HostCopy) -> None:
        """Count a copy on the host until it is let go of."""
        self.host_bytes += copied.host_bytes
        self.host_peak_bytes = max(self.host_peak_bytes, self.host_bytes)
        weakref.finalize(copied, self._release_host, copied.host_bytes).atexit = False

    def _release_host(self, host_bytes: int) -> None:
        self.host_bytes -= host_bytes

    def pass_through(self, span: Span) -> None:
        """A stretch of the pass."""
        live = self.live_bytes
        if live + span.rise_bytes > self.peak_bytes:
            self.peak_bytes = live + span.rise_bytes
        if live + span.workspace_rise_bytes > self.peak_with_workspace_bytes:
            self.peak_with_workspace_bytes = live + span.workspace_rise_bytes
        self.live_bytes = live + span.net_bytes


class Storage:
    """One block of memory."""

    __slots__ = ("__weakref__", "_account", "storage_bytes")

    def __init__(self, storage_bytes: int, account: LiveBytes) -> None:
        self.storage_bytes = storage_bytes
        self._account = account
        account.live_bytes += storage_bytes

    def __del__(self) -> None:
        self._account.live_bytes -= self.storage_bytes


class SymbolicArray:
    """A shape and a dtype in a storage."""

    __slots__ = ("dtype", "nbytes", "shape", "storage")

    def __init__(self, shape: tuple[int, ...], dtype: str, nbytes: int, storage: Storage) -> None:
        self.shape = shape
        self.dtype = dtype
        self.nbytes = nbytes
        self.storage = storage

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)


class SymbolicNamespace:
    """What ops call: it plays the stretches of the recorded program.

    Attributes:
        account: live bytes.
        again: node id -> how often it was computed again.
        spans: node id -> what its op takes in the forward pass.
        drawn: the random nodes, in the order of their draws.
    """

    def __init__(self, graph: CostGraph, spans: dict[int, Span], drawn: Sequence[int]) -> None:
        self.graph = graph
        self.spans = spans
        self.drawn = drawn
        self.begin()

    def begin(self) -> None:
        """A pass from the start."""
        self.account = LiveBytes()
        self.again: Counter[int] = Counter()
        self._made: set[int] = set()
        self._retrieved: dict[Release, SymbolicArray] = {}

    def new(self, node: CostNode, storage: Storage | None = None) -> SymbolicArray:
        """The value of a node, in `storage` or in one of its own."""
        if storage is None:
            storage = Storage(node.storage_bytes, self.account)
        return SymbolicArray(node.shape, node.dtype, node.value_bytes, storage)

    def evaluate(self, node: CostNode, operands: Sequence[SymbolicArray]) -> SymbolicArray:
        """The node's op, in the forward pass or again."""
        if node.id in self._made:
            span = node.again
            self.again[node.id] += 1
        else:
            self._made.add(node.id)
            span = self.spans[node.id]
        self.account.pass_through(span)
        return self.new(node, self._shared(node, operands))

    def _shared(self, node: CostNode, operands: Sequence[SymbolicArray]) -> Storage | None:
        """The storage of the operand that the value is a view of; None for memory of its own."""
        if node.memory_of == node.id:
            return None
        nodes = self.graph.nodes
        for parent, operand in zip(node.parents, operands):
            if nodes[parent].memory_of == node.memory_of:
                return operand.storage
        return None

    def step(self, step_id: int, kept: list[Any]) -> None:
        """The backward step of a node, which has retrieved `kept`."""
        places = [Release(step_id, index) for index in range(len(kept))]
        self._retrieved.update(zip(places, kept))
        kept.clear()
        self._play(self.graph.steps[step_id])

    def _play(self, items: Sequence[StepItem]) -> None:
        for item in items:
            if isinstance(item, Span):
                self.account.pass_through(item)
            else:
                del self._retrieved[item]

    def ones_seed(self, like: SymbolicArray) -> SymbolicArray:
        """The first gradient; gradients are bytes of the recorded steps."""
        self._play(self.graph.before)
        return GRADIENT

    def add(self, gradient: Any, before: Any, out: Any = None) -> SymbolicArray:
        """The sum of two gradients."""
        return GRADIENT

    def random(self, key: RandomKey, shape: tuple[int, ...], dtype: str) -> SymbolicArray:
        """A random array: of draw k of the pass the k-th random node."""
        return self.evaluate(self.graph.nodes[self.drawn[key.index]], ())

    def to_host(self, x: SymbolicArray) -> HostCopy:
        """A copy that takes no device memory."""
        copied = HostCopy((x.shape, x.dtype), x.nbytes)
        self.account.take_host(copied)
        return copied

    def from_host(self, copied: HostCopy) -> SymbolicArray:
        """A new array of the device."""
        shape, dtype = copied.array
        self.account.pass_through(Span(copied.host_bytes, copied.host_bytes, 0))
        return SymbolicArray(
            shape, dtype, copied.host_bytes, Storage(copied.host_bytes, self.account)
        )

    @staticmethod
    def nbytes(x: SymbolicArray) -> int:
        """The bytes of the elements."""
        return x.nbytes

    @staticmethod
    def dtype_name(x: SymbolicArray) -> str:
        """The name of the element type."""
        return x.dtype

    @staticmethod
    def storage_of(x: SymbolicArray) -> Storage:
        """The storage."""
        return x.storage

    @staticmethod
    def storage_id(x: SymbolicArray) -> int:
        """The identity of the storage, valid while it lives."""
        return id(x.storage)


GRADIENT = SymbolicArray((1,), "gradient", 0, Storage(0, LiveBytes()))
"""Stands for every gradient."""


class SymbolicBackend(Backend):
    """Arrays without elements."""

    name = "symbolic"
    label = "Symbolic"
    library = "none"

    def __init__(self, namespace: SymbolicNamespace) -> None:
        self.namespace = cast(Namespace, namespace)
        self.dtypes = tuple({node.dtype for node in namespace.graph.nodes})

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        array: Array = data
        return array

    def to_numpy(self, array: Array) -> Any:
        raise TypeError("an array without elements has no values")

    def storage_values(self, storage: Any, dtype: str) -> Any:
        raise TypeError("a storage without elements has no values")


def twin(node: CostNode) -> Op:
    """The op of a node with its recorded programs in place of its functions."""
    facts = node.facts
    assert facts is not None
    assert node.op is not None
    masks = 1 << max(1, len(node.parents))
    return Op(
        node.op,
        Bound(facts.bound),
        facts.arity,
        forward=lambda xp, *operands: xp.evaluate(node, operands[:-1]),
        backward=_step(node, facts.arity),
        keeps=(facts.keeps,) * masks,
        flow=Flow.SHARED,
        flops=lambda operands, output: node.flops,
        is_view=not node.moved_bytes,
        evaluates_again=facts.evaluates_again,
        reads_output=facts.reads_output,
    )


def _step(node: CostNode, arity: int) -> Callable[..., Any]:
    def backward(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
        xp.step(node.id, kept)
        if arity == 1:
            return GRADIENT
        return [GRADIENT if parent.tracked else None for parent in step.parents]

    return backward
