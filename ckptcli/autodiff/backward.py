"""The backward pass: which steps run, in which order, and what each of them takes and gives.

1. Collect the steps from the root, depth first, last parent first; nothing is changed yet.
2. The strategy builds what answers `retrieve` from what the steps saved.
3. Run the steps from the highest order to the lowest, in emission order within one order. A step
   retrieves its values, takes its gradient, registers its parents' gradients, and is consumed.

Invariants: a pass that is refused changes nothing; afterwards the retriever is drained; no loop
here grows with the graph for each node.

Source: Burn 0.22.1, `burn-autodiff/src/{grads,runtime/*,graph/traversal}.rs`, in which the order
of equal depth follows from a stack.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn

from ckptcli.autodiff.broadcasting import unbroadcast
from ckptcli.autodiff.gradients import Gradients
from ckptcli.autodiff.op import Flow, Op
from ckptcli.autodiff.tensor import Tensor, method, wrap
from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.retriever import Retriever
from ckptcli.errors import ConsumedNodeError, UntrackedBackwardWarning, UntrackedLeafError
from ckptcli.events import GradientRegistered, Sink, StepStarted
from ckptcli.graph import CONSUMED, Node, leaf_node

_by_order = attrgetter("order")

FRESH = Flow.FRESH
PASSED = Flow.PASSED


Consumer = Callable[[int, Tensor], None]
"""Takes the complete gradient of a leaf, by the leaf's node id."""


@method()
def backward(root: Tensor, consume: Consumer | None = None) -> Gradients:
    """The gradients of the sum of `root` with respect to every leaf that requires one.

    The graph is consumed: values held for the pass are released as it goes. With `consume` each
    leaf's gradient is handed over as soon as the last step that adds to it has run, on the device
    without autodiff, and is not among those returned.

    Raises:
        UntrackedLeafError: `root` is a leaf that requires no gradient.
        ConsumedNodeError: the graph contains a node that an earlier backward pass used up.
        DeviceError: the device has no autodiff.

    Warns:
        UntrackedBackwardWarning: `root` is computed from constants alone; there are no gradients.
    """
    device = root.device
    device.check_autodiff("backward()")
    node = root.node
    pass_ = _Pass(root) if consume is None else _ConsumedPass(root, consume)
    op: Op | None = node.op  # type: ignore[assignment]
    if op is None and node.tracked:
        return pass_.finish()
    if op is None or not (node.tracked or op.step_when_untracked):
        _raise_untracked_leaf(node)
    if not node.tracked:
        warnings.warn(
            f"backward() on node {node.id} (`{op.name}`) gives no gradients: it is computed "
            "from constants alone; call `require_grad()` on a leaf that it depends on",
            UntrackedBackwardWarning,
            stacklevel=2,
        )
        return pass_.finish()
    steps = collect(node)
    retriever = device.strategy.retriever(steps, device.namespace, device.sink)
    steps.sort(key=_by_order, reverse=True)
    pass_.run(steps, retriever)
    retriever.check_drained()
    return pass_.finish()


def collect(root: Node) -> list[Node]:
    """The steps that lead from `root` to leaves, in Burn's emission order, root first.

    Raises:
        ConsumedNodeError: one of them was used up by an earlier backward pass.
    """
    if root.op is CONSUMED:
        _raise_consumed(root, root)
    seen = {root.id}
    steps = [root]
    stack = [parent for parent in root.parents if parent.mask]
    while stack:
        node = stack.pop()
        node_id = node.id
        if node_id in seen:
            continue
        if node.op is CONSUMED:
            _raise_consumed(node, root)
        seen.add(node_id)
        steps.append(node)
        for parent in node.parents:
            if parent.mask and parent.id not in seen:
                stack.append(parent)
    return steps


class _Pass:
    """The gradients while the steps run.

    Attributes:
        arrays: node id -> gradient that is registered and not yet consumed.
        shared: ids whose gradient shares memory with another, and so is never written to.
    """

    __slots__ = ("arrays", "device", "namespace", "shared", "sink")

    def __init__(self, root: Tensor) -> None:
        self.device = root.device
        self.namespace: Namespace = root.device.namespace
        self.sink: Sink | None = root.device.sink
        node_id = root.node.id
        self.arrays: dict[int, Any] = {node_id: self.namespace.ones_seed(root.value)}
        self.shared = {node_id}

    def run(self, steps: list[Node], retriever: Retriever) -> None:
        """Run `steps`, which are in the order of execution."""
        namespace = self.namespace
        arrays = self.arrays
        shared = self.shared
        sink = self.sink
        retrieve = retriever.retrieve
        for step in steps:
            op: Op = step.op  # type: ignore[assignment]
            step_id = step.id
            if sink is not None:
                sink.emit(StepStarted(step_id, op.name, op.evaluates_again))
            kept = retrieve(step) if step.saved else []
            owned = step_id not in shared
            result = op.backward(namespace, arrays.pop(step_id), owned, kept, step)
            flow = op.flow
            is_plain = flow is FRESH and sink is None
            if op.arity == 1:
                parent_id = step.parents[0].id
                if is_plain and parent_id not in arrays:
                    arrays[parent_id] = result
                else:
                    self.register(parent_id, result, flow, owned)
            else:
                if op.broadcasts and step.state is not None:
                    result = unbroadcast(namespace, result, step.state)
                elif flow is PASSED and step.mask & (step.mask - 1):
                    owned = False
                for parent, gradient in zip(step.parents, result):
                    if gradient is not None:
                        parent_id = parent.id
                        if is_plain and parent_id not in arrays:
                            arrays[parent_id] = gradient
                        else:
                            self.register(parent_id, gradient, flow, owned)
                gradient = None
            result = None
            step.op = CONSUMED
            step.parents = step.saved = ()
            step.params = step.state = None

    def register(self, node_id: int, gradient: Any, flow: Flow, owned: bool) -> None:
        """Add `gradient` to the node's; `owned` is whether the gradient it came from was."""
        arrays = self.arrays
        overwritable = flow is FRESH or (owned and flow is Flow.PASSED)
        if node_id in arrays:
            before = arrays[node_id]
            if node_id not in self.shared:
                arrays[node_id] = self.namespace.add(gradient, before, before)
            else:
                out = gradient if overwritable else None
                arrays[node_id] = self.namespace.add(gradient, before, out)
                self.shared.discard(node_id)
        else:
            arrays[node_id] = gradient
            if not overwritable:
                self.shared.add(node_id)
        if self.sink is not None:
            storage = self.namespace.storage_id(arrays[node_id])
            self.sink.emit(GradientRegistered(node_id, storage))

    def finish(self) -> Gradients:
        return Gradients(self.arrays, self.device.inner())


class _ConsumedPass(_Pass):
    """A pass that hands each leaf's gradient over with its last contribution."""

    __slots__ = ("consume",)

    def __init__(self, root: Tensor, consume: Consumer) -> None:
        super().__init__(root)
        self.consume = consume

    def run(self, steps: list[Node], retriever: Retriever) -> None:
        last_step: dict[int, int] = {}
        for step in steps:
            for parent in step.parents:
                if parent.tracked and parent.op is None:
                    last_step[parent.id] = step.id
        for step in steps:
            step_id, leaf_ids = step.id, dict.fromkeys(parent.id for parent in step.parents)
            super().run([step], retriever)
            for leaf_id in leaf_ids:
                if last_step.get(leaf_id) == step_id and leaf_id in self.arrays:
                    self._hand_over(leaf_id)

    def _hand_over(self, leaf_id: int) -> None:
        gradient = wrap(self.arrays.pop(leaf_id), leaf_node(-1, 0), self.device.inner())
        self.shared.discard(leaf_id)
        self.consume(leaf_id, gradient)


def _raise_untracked_leaf(node: Node) -> NoReturn:
    raise UntrackedLeafError(
        f"backward() on node {node.id}, a leaf that requires no gradient: Node should have a step "
        "registered, did you forget to call `Tensor::register_grad` on the tensor where you need "
        "gradients?",
        "call `require_grad()` on it, or `backward()` on a loss",
    )


def _raise_consumed(node: Node, root: Node) -> NoReturn:
    raise ConsumedNodeError(
        f"backward() from node {root.id} reaches node {node.id}, which an earlier backward pass "
        "has used up",
        "run the forward pass again, or add the losses and call backward() once",
    )
