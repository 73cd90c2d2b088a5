"""The cost graph of a program, from one watched pass.

The forward pass gives values, what they cost and when the program lets go of them; the backward
pass gives each step with the moments at which it lets go of what it retrieved, its gradient and its
temporaries. Values are lent to steps, so that the last reference of a step is seen though the
checkpointer may still hold the value. The pass runs under `balanced`: which strategy it is has no
influence on what is recorded.

Invariant: the recorder holds no array, no node and no tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.gradients import Gradients
from ckptcli.autodiff.tensor import Tensor
from ckptcli.backends.base import Backend, Namespace
from ckptcli.backends.loan import Loan
from ckptcli.checkpoint.program_watcher import ProgramWatcher
from ckptcli.checkpoint.retriever import Retriever
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.errors import UsageError
from ckptcli.events import (
    Fanout,
    LayersEnded,
    LayerStarted,
    NodeCreated,
    RegionClosed,
    RegionOpened,
    Sink,
    StepStarted,
    ValueNamed,
    Watcher,
)
from ckptcli.graph import Node, fresh_node_ids
from ckptcli.planning.tape.cost_graph import (
    Action,
    ApplyOp,
    CloseRegion,
    CostGraph,
    CostNode,
    DrawLeaf,
    DropHandle,
    EndLayers,
    KeepOutput,
    MakeLeaf,
    NameValue,
    OpenRegion,
    OpFacts,
    Release,
    Span,
    StartLayer,
    StepItem,
    TakeBytes,
    TrackLeaf,
)
from ckptcli.simulation.account import Account
from ckptcli.simulation.op_facts import arrays_in, facts_of
from ckptcli.simulation.recording_backend import RecordingBackend
from ckptcli.workloads.base import ForwardResult, Workload


def record(workload: Workload, backend: Backend, consumes: bool = False) -> CostGraph:
    """The cost graph of the workload, from one pass of it on `backend`.

    `consumes` is whether leaves' gradients are let go of as soon as they are complete.

    Raises:
        UsageError: a backend whose arrays cannot be followed.
    """
    if not backend.can_lend:
        raise UsageError(
            f"the costs of a program cannot be recorded on {backend.label}, where nobody sees when "
            "a backward step lets go of a value",
            "use --backend numpy, or another --device",
        )
    account = Account(backend.namespace)
    forward, watcher = _ForwardRecorder(account), ProgramWatcher()
    backward = _BackwardRecorder(account, backend.lend)
    device = _device(RecordingBackend(backend, account), account, forward, backward, watcher)
    with backend.quiet():
        network = workload.load(device)
        load = forward.take_actions()
        base_bytes = account.live_bytes
        result = network.forward()
        forward.end()
        parameters = {name: tensor.node.id for name, tensor in result.parameters.items()}
        root = result.root.node.id
        backward.run(result, consumes)
    return CostGraph(
        title=workload.title,
        nodes=tuple(forward.nodes_with(backward.needed)),
        layers=tuple(place for _, _, place in watcher.made),
        loops=tuple(watcher.loops),
        parameters=parameters,
        root=root,
        consumes=consumes,
        base_bytes=base_bytes,
        load=load,
        forward=tuple(forward.actions),
        before=tuple(backward.before),
        steps={step_id: tuple(items) for step_id, items in backward.steps.items()},
        step_times_s={},
        backend=backend.label,
        sees_workspace=backend.sees_kernel_memory,
    )


def whole_backward(result: ForwardResult, consumes: bool) -> Gradients:
    """The second half of a pass; gradients of leaves that it consumes it lets go of at once."""
    return result.root.backward(_let_go if consumes else None)


def _device(
    backend: Backend,
    account: Account,
    forward: _ForwardRecorder,
    backward: _BackwardRecorder,
    watcher: ProgramWatcher,
) -> Device:
    ids = fresh_node_ids()

    def next_id() -> int:
        account.forward_ends()
        return ids()

    sink = Fanout(watcher, forward.watcher(), backward.watcher())
    device = Device(backend, _Recorded(backward), sink, next_id)
    device.handles = forward.follow
    return device


class _ForwardRecorder:
    """Notes what the program does in its forward pass."""

    def __init__(self, account: Account) -> None:
        self.actions: list[Action] = []
        self._account = account
        self._nodes: list[CostNode] = []
        self._handles: dict[int, int] = {}
        """Node id -> how many tensors of it the program has in hand."""
        self._references: dict[int, weakref.ref[Tensor]] = {}
        self._facts: OpFacts | None = None
        self._held_storages: set[int] = set()
        self._unnamed: int | None = None
        self._draws = 0
        self._is_done = False

    def watcher(self) -> Watcher:
        """The sink for what the forward pass tells."""
        return Watcher(
            {
                NodeCreated: self._create,
                ValueNamed: lambda event: self._act(NameValue(event.node_id, event.name)),
                RegionOpened: lambda event: self._act(OpenRegion(event.name, event.policy)),
                RegionClosed: lambda event: self._act(CloseRegion()),
                LayerStarted: lambda event: self._act(StartLayer(event.layer, event.layer_count)),
                LayersEnded: lambda event: self._act(EndLayers()),
            }
        )

    def take_actions(self) -> tuple[Action, ...]:
        """The actions so far: the forward pass begins."""
        self._act_bytes()
        taken, self.actions = tuple(self.actions), []
        return taken

    def end(self) -> None:
        """The forward pass has ended."""
        self._keep_output()
        self._act_bytes()
        self._is_done = True

    def nodes_with(self, needed: dict[int, tuple[int, ...]]) -> list[CostNode]:
        """The nodes, with the values that their backward steps retrieve."""
        from dataclasses import replace

        return [replace(node, needed=needed.get(node.id, ())) for node in self._nodes]

    def follow(self, tensor: Tensor) -> None:
        """A tensor is put into the program's hands."""
        node = tensor.node
        node_id = node.id
        if node_id < 0:
            return
        if node_id < len(self._nodes):
            self._act(TrackLeaf(node_id))
        else:
            self._facts = facts_of(node)
            arrays = arrays_in((node.state, node.params))
            self._held_storages = {self._account.storage_id(array) for array in arrays}
        self._handles[node_id] = self._handles.get(node_id, 0) + 1
        key = id(tensor)
        self._references[key] = weakref.ref(tensor, lambda _: self._drop(key, node_id))

    def _drop(self, key: int, node_id: int) -> None:
        del self._references[key]
        self._handles[node_id] -= 1
        if not self._handles[node_id] and not self._is_done:
            self._act(DropHandle(node_id))

    def _act(self, action: Action) -> None:
        if self._is_done:
            return
        if not isinstance(action, NameValue):
            self._keep_output()
        self._act_bytes()
        self.actions.append(action)

    def _act_bytes(self) -> None:
        span = self._account.take()
        if any(span):
            self.actions.append(TakeBytes(span))

    def _keep_output(self) -> None:
        if self._unnamed is not None:
            self.actions.append(KeepOutput(self._unnamed))
            self._unnamed = None

    def _create(self, event: NodeCreated) -> None:
        if event.node_id < 0:
            return
        self._keep_output()
        account, facts = self._account, self._facts
        again = account.evaluation()
        is_new = account.is_new_value(event.storage)
        storage_bytes = account.storage_bytes(event.storage) if is_new else 0
        if is_new or event.storage not in account.owners:
            account.owners[event.storage] = event.node_id
        memory_of = account.owners[event.storage]
        span = account.take(storage_bytes)
        self._nodes.append(
            CostNode(
                id=event.node_id,
                op=event.op,
                parents=event.parents,
                shape=event.shape,
                dtype=event.dtype,
                value_bytes=event.value_bytes,
                storage_bytes=storage_bytes,
                memory_of=memory_of,
                tracked=event.tracked,
                needed=(),
                again=again,
                flops=event.flops,
                moved_bytes=event.moved_bytes,
                time_s=0.0,
                free_signs=event.free_signs,
                source=event.source,
                facts=facts,
            )
        )
        self.actions.append(self._making(event, span, memory_of))
        if facts is not None and facts.reads_output and event.tracked:
            self._unnamed = event.node_id
        self._facts = None

    def _making(self, event: NodeCreated, span: Span, memory_of: int) -> Action:
        drawn = self._account.take_drawn()
        if drawn is not None:
            return DrawLeaf(event.node_id, drawn.name, drawn.first, drawn.second, span)
        if event.op is not None:
            owners = [self._account.owners.get(key) for key in self._held_storages]
            holds = tuple(sorted(owner for owner in owners if owner is not None))
            return ApplyOp(event.node_id, span, holds)
        return MakeLeaf(event.node_id, None if memory_of == event.node_id else memory_of, span)


class _BackwardRecorder:
    """Notes what each backward step does once it has retrieved its values."""

    def __init__(self, account: Account, lend: Callable[[Any], tuple[Any, Loan]]) -> None:
        self.account = account
        self._lend = lend
        self.before: list[StepItem] = []
        self.steps: dict[int, list[StepItem]] = {}
        self.needed: dict[int, tuple[int, ...]] = {}
        self._items = self.before
        self._loans: dict[tuple[int, int], weakref.ref[Any]] = {}

    def watcher(self) -> Watcher:
        """The sink for what the backward pass tells."""
        return Watcher({StepStarted: self._start})

    def run(self, result: ForwardResult, consumes: bool) -> None:
        """The backward pass; its last stretch ends with it."""
        gradients = whole_backward(result, consumes)
        self._flush()
        del gradients

    def _start(self, event: StepStarted) -> None:
        self._flush()
        self._items = self.steps[event.node_id] = []

    def _flush(self) -> None:
        span = self.account.take()
        if any(span):
            self._items.append(span)

    def lend(self, step_id: int, node_id: int, value: Any) -> Any:
        """The value for a step, as memory whose last reference is seen."""
        needed = self.needed.get(step_id, ())
        self.needed[step_id] = (*needed, node_id)
        place = (step_id, len(needed))
        array, loan = self._lend(value)
        self.account.disown(array)
        self._loans[place] = weakref.ref(loan, lambda _: self._release(place))
        return array

    def _release(self, place: tuple[int, int]) -> None:
        del self._loans[place]
        self._flush()
        self._items.append(Release(*place))


def _let_go(node_id: int, gradient: Tensor) -> None:
    """Takes a gradient and keeps it not."""


class _Recorded(BalancedCheckpointing):
    """`balanced`, whose retriever lends."""

    keyword: ClassVar[str] = "recorded"
    label: ClassVar[str] = "Recorded"

    def __init__(self, backward: _BackwardRecorder) -> None:
        self._backward = backward

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        return _LendingRetriever(super().retriever(steps, namespace, sink), self._backward)


class _LendingRetriever:
    """Lends what the strategy's own retriever gives; what that computes again is not counted."""

    def __init__(self, inner: Retriever, backward: _BackwardRecorder) -> None:
        self._inner = inner
        self._backward = backward

    def retrieve(self, step: Node) -> list[Any]:
        account = self._backward.account
        account.counts = False
        values = self._inner.retrieve(step)
        account.counts = True
        lend = self._backward.lend
        return [lend(step.id, node.id, value) for node, value in zip(step.saved, values)]

    def check_drained(self) -> None:
        self._inner.check_drained()
