"""Names what each storage of the ledger is, from the engine's events.

A storage can change what it is: a step may overwrite its gradient and hand it on. Each name is
therefore kept with the tick from which it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ckptcli.backends.ledger import Ledger, Storage
from ckptcli.events import Event, GradientRegistered, NodeCreated, Recomputed


@dataclass(frozen=True, slots=True)
class Label:
    """What a storage holds: the value or gradient of a node, or what a step works with."""

    node_id: int | None
    op: str | None
    why: str


UNLABELLED = Label(None, None, "temporary")


class Labeller:
    """A sink that labels storages."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._labels: dict[int, list[tuple[int, Label]]] = {}
        self._ops: dict[int, str | None] = {}
        self._leaves: dict[int, int] = {}

    def emit(self, event: Event) -> None:
        if isinstance(event, NodeCreated):
            self._ops[event.node_id] = event.op
            if event.op is None:
                self._leaves[event.storage] = event.node_id
            else:
                self._label(event.storage, Label(event.node_id, event.op, "value"), once=True)
        elif isinstance(event, Recomputed):
            self._label(event.storage, Label(event.node_id, event.op, "recomputed"), once=True)
        elif isinstance(event, GradientRegistered):
            op = self._ops.get(event.node_id)
            why = "gradient of a parameter" if op is None else "gradient"
            self._label(event.storage, Label(event.node_id, op, why))

    def label_live(self, why: str) -> None:
        """Give every storage that is live now this label, and the node that it was loaded for."""
        for key, storage in self._ledger.live_by_id().items():
            label = Label(self._leaves.get(key), None, why)
            self._labels[id(storage)] = [(storage.born, label)]

    def relabel(self, storage_id: int, why: str) -> None:
        """Say better what a live storage is."""
        storage = self._ledger.storage(storage_id)
        if storage is not None:
            label = self.at(storage, self._ledger.tick)
            self._labels[id(storage)] = [(storage.born, replace(label, why=why))]

    def at(self, storage: Storage, tick: int) -> Label:
        """What the storage was at `tick`; before its first label, what it became."""
        labels = self._labels.get(id(storage))
        if not labels:
            return UNLABELLED
        known = [label for since, label in labels if since <= tick]
        return known[-1] if known else labels[0][1]

    def _label(self, storage_id: int, label: Label, once: bool = False) -> None:
        storage = self._ledger.storage(storage_id)
        if storage is None:
            return
        labels = self._labels.setdefault(id(storage), [])
        if not (once and labels):
            labels.append((self._ledger.tick, label))
