"""Whether every value that comes back, computed again or brought back from the host, is the value
that the forward pass computed, bit for bit.

A sink that keeps a copy of each value of the forward pass and holds it against what comes back: no
other system does (jax.checkpoint and torch.utils.checkpoint compare shapes and dtypes at most).

Invariant: values are looked at through the ledger's references; an event itself holds no array.
"""

from __future__ import annotations

from typing import Any

from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger
from ckptcli.events import BroughtBack, Event, LayersEnded, LayerStarted, NodeCreated, Recomputed
from ckptcli.measure.gauge import GaugeChange
from ckptcli.measure.wrong_values import NodeValue
from ckptcli.verify.bits import first_difference
from ckptcli.verify.gauge import gauge_change


class FidelitySink:
    """Compares; `compared` counts the values that came back, `wrong` has those that differ.

    `spread` is how far two runs of the library lie apart, if its bits are not to be compared.
    `gauges` says of each decomposition that differs how it does.
    `detaches` is whether the program cuts a value off from where it came from.
    """

    def __init__(self, ledger: Ledger, backend: Backend, spread: float | None = None) -> None:
        self._spread = spread
        self.compared = 0
        self.wrong: list[NodeValue] = []
        self.gauges: list[GaugeChange] = []
        self.detaches = False
        self._layers_entered: list[int] = []
        self._layers: dict[int, int | None] = {}
        self._decompositions: dict[int, NodeCreated] = {}
        self._named: set[int] = set()
        self._ledger = ledger
        self._backend = backend
        self._originals: dict[int, Any] = {}
        self._ops: dict[int, str] = {}
        self._sources: dict[int, str] = {}

    def emit(self, event: Event) -> None:
        if isinstance(event, LayerStarted):
            if event.layer > 0:
                self._layers_entered.pop()
            self._layers_entered.append(event.layer)
        elif isinstance(event, LayersEnded):
            self._layers_entered.pop()
        if isinstance(event, NodeCreated):
            self._look_for_detach(event)
        if isinstance(event, NodeCreated) and event.op is not None:
            self._originals[event.node_id] = self._values(event.storage)
            self._ops[event.node_id], self._sources[event.node_id] = event.op, event.source
            entered = self._layers_entered
            self._layers[event.node_id] = entered[-1] if entered else None
            if event.free_signs:
                self._decompositions[event.node_id] = event
        elif isinstance(event, Recomputed | BroughtBack):
            self._compare(event)

    def _look_for_detach(self, event: NodeCreated) -> None:
        """A leaf in the memory of an earlier node is that node's value, detached."""
        storage = self._ledger.storage(event.storage)
        if event.op is None and id(storage) in self._named:
            self.detaches = True
        self._named.add(id(storage))

    def _values(self, storage_id: int) -> Any:
        owner, storage = self._ledger.owner(storage_id), self._ledger.storage(storage_id)
        if owner is None or storage is None:
            return None
        return self._backend.storage_values(owner, storage.dtype)

    def _compare(self, event: Recomputed | BroughtBack) -> None:
        original = self._originals[event.node_id]
        value = self._values(event.storage)
        if original is None or value is None:
            return
        self.compared += 1
        difference = first_difference(original, value, self._spread)
        if difference is None:
            return
        node, op = event.node_id, self._ops[event.node_id]
        layer = self._layers[node]
        self.wrong.append(NodeValue(node, op, self._sources[node], difference, layer))
        made = self._decompositions.get(node)
        if made is not None:
            before, after = original.reshape(made.shape), value.reshape(made.shape)
            self.gauges.append(gauge_change(before, after, op, node, layer, made.free_signs))
