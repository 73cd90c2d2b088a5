"""A recorded program as a workload: its tensors are made, named and let go of as they were.

Invariant: node ids are those of the recorded pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import binary, many, unary, with_own_output
from ckptcli.autodiff.device import Device
from ckptcli.autodiff.draws import random_tensor
from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops.products import Repetition
from ckptcli.autodiff.regions import checkpoint_name
from ckptcli.autodiff.tensor import Tensor, new_leaf
from ckptcli.backends.random_keys import Distribution
from ckptcli.checkpoint.regions import Region
from ckptcli.planning.tape.cost_graph import (
    Action,
    ApplyOp,
    CloseRegion,
    CostGraph,
    DrawLeaf,
    DropHandle,
    EndLayers,
    KeepOutput,
    MakeLeaf,
    NameValue,
    OpenRegion,
    StartLayer,
    TakeBytes,
    TrackLeaf,
)
from ckptcli.simulation.symbolic import SymbolicNamespace
from ckptcli.workloads.base import ForwardResult


class ScriptNetwork:
    """The program on a device.

    `load` and `forward` play the two parts; the strategy's layer regions are opened where the
    program goes through `Device.layers`.
    """

    def __init__(
        self, graph: CostGraph, twins: Sequence[Op | None], device: Device, xp: SymbolicNamespace
    ) -> None:
        self._graph = graph
        self._twins = twins
        self._device = device
        self._xp = xp
        self._handles: dict[int, Tensor] = {}
        self._regions: list[Region] = []
        self._loops: list[Any] = []
        self._takes: dict[type, Any] = {
            MakeLeaf: self._make_leaf,
            TrackLeaf: self._track,
            DrawLeaf: self._draw,
            ApplyOp: self._apply,
            NameValue: self._name,
            KeepOutput: self._keep_output,
            DropHandle: self._drop,
            OpenRegion: self._open,
            CloseRegion: self._close,
            StartLayer: self._start_layer,
            EndLayers: self._end_layers,
            TakeBytes: self._take_bytes,
        }

    def load(self) -> None:
        """What is live before the forward pass; it is counted as one figure."""
        self._play(self._graph.load)
        for tensor in self._handles.values():
            tensor.value.storage.storage_bytes = 0

    def forward(self) -> ForwardResult:
        """The forward pass. What the program has in hand at its end it has until the next."""
        self._play(self._graph.forward)
        handles = self._handles
        parameters = {name: handles[node_id] for name, node_id in self._graph.parameters.items()}
        return ForwardResult(handles[self._graph.root], parameters)

    def _play(self, actions: Sequence[Action]) -> None:
        takes = self._takes
        for action in actions:
            takes[type(action)](action)

    def _make_leaf(self, action: MakeLeaf) -> None:
        node = self._graph.nodes[action.node_id]
        self._xp.account.pass_through(action.span)
        of = None if action.of is None else self._value_in(action.of)
        storage = None if of is None else of.storage
        tracked = int(node.tracked and action.of is not None)
        self._hold(new_leaf(self._xp.new(node, storage), self._device, tracked), node.id)

    def _hold(self, tensor: Tensor, node_id: int) -> None:
        assert tensor.node.id == node_id, "nodes are made in the recorded order"
        self._handles[node_id] = tensor

    def _track(self, action: TrackLeaf) -> None:
        self._handles[action.node_id] = self._handles[action.node_id].require_grad()

    def _draw(self, action: DrawLeaf) -> None:
        node = self._graph.nodes[action.node_id]
        drawn = Distribution(action.distribution, action.first, action.second)
        self._hold(random_tensor(self._device, drawn, node.shape, node.dtype), node.id)

    def _apply(self, action: ApplyOp) -> None:
        node_id = action.node_id
        node = self._graph.nodes[node_id]
        op, facts = self._twins[node_id], node.facts
        assert op is not None
        assert facts is not None
        operands = [self._handles[parent] for parent in node.parents]
        params = Repetition(facts.batch_dims) if facts.batch_dims else facts.params
        if len(operands) == 1:
            tensor = unary(op, operands[0], params)
        elif len(operands) == 2:
            tensor = binary(op, operands[0], operands[1], params)
        else:
            tensor = many(op, operands, params)
        self._hold(tensor, node_id)
        if action.holds:
            tensor.node.state = [self._value_in(memory) for memory in action.holds]

    def _value_in(self, memory: int) -> Any:
        """A value in the memory that a node made, of a tensor that is in hand."""
        nodes = self._graph.nodes
        for node_id, tensor in self._handles.items():
            if nodes[node_id].memory_of == memory:
                return tensor.value
        return None

    def _name(self, action: NameValue) -> None:
        checkpoint_name(self._handles[action.node_id], action.name)

    def _keep_output(self, action: KeepOutput) -> None:
        with_own_output(self._handles[action.node_id])

    def _drop(self, action: DropHandle) -> None:
        del self._handles[action.node_id]

    def _open(self, action: OpenRegion) -> None:
        self._regions.append(self._device.open_region(action.name, action.policy))

    def _close(self, action: CloseRegion) -> None:
        self._device.close_region(self._regions.pop())

    def _start_layer(self, action: StartLayer) -> None:
        if action.layer == 0:
            self._loops.append(iter(self._device.layers(action.layer_count)))
        next(self._loops[-1])

    def _end_layers(self, action: EndLayers) -> None:
        loop = self._loops.pop()
        for _ in loop:  # what follows the last layer: its region is closed
            break

    def _take_bytes(self, action: TakeBytes) -> None:
        self._xp.account.pass_through(action.span)
