"""Names what each storage of the ledger is, from the engine's events.

A storage can change what it is: a step may overwrite its gradient and hand it on. Each label is
therefore kept with the tick from which it holds, on the storage itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ckptcli.backends.ledger import Ledger, Storage
from ckptcli.events import BroughtBack, GradientRegistered, NodeCreated, Recomputed, Watcher


@dataclass(slots=True)
class Label:
    """What a storage holds: the value or gradient of a node, or what a step works with.

    Not frozen, since one is made for each value and gradient: that would take three times as long.

    Attributes:
        since: the ledger's tick from which it holds.
        before: what the storage was before that.
    """

    node_id: int | None
    op: str | None
    why: str
    since: int = 0
    before: Label | None = None


UNLABELLED = Label(None, None, "temporary")


class Labeller(Watcher):
    """A sink that labels storages.

    `created` has every node's creation, put there before this sink gets what comes after it.
    """

    def __init__(self, ledger: Ledger, created: Mapping[int, NodeCreated]) -> None:
        super().__init__(
            {
                NodeCreated: self._created,
                Recomputed: self._recomputed,
                BroughtBack: self._brought_back,
                GradientRegistered: self._registered,
            }
        )
        self._ledger = ledger
        self._created_nodes = created
        self._leaves: dict[int, int] = {}

    def _created(self, event: NodeCreated) -> None:
        if event.op is None:
            self._leaves[event.storage] = event.node_id
        else:
            self._label_first(event.storage, event.node_id, event.op, "value")

    def _recomputed(self, event: Recomputed) -> None:
        self._label_first(event.storage, event.node_id, event.op, "recomputed")

    def _brought_back(self, event: BroughtBack) -> None:
        made = self._created_nodes.get(event.node_id)
        if made is not None and made.op is not None:
            self._label_first(event.storage, event.node_id, made.op, "saved")

    def _registered(self, event: GradientRegistered) -> None:
        storage = self._ledger.storage(event.storage)
        if storage is not None:
            created = self._created_nodes.get(event.node_id)
            op = None if created is None else created.op
            why = "gradient of a parameter" if op is None else "gradient"
            storage.label = Label(event.node_id, op, why, self._ledger.tick, storage.label)

    def _label_first(self, storage_id: int, node_id: int, op: str, why: str) -> None:
        """A value keeps the label of the node that made it: a view is no other storage."""
        storage = self._ledger.storage(storage_id)
        if storage is not None and storage.label is None:
            storage.label = Label(node_id, op, why, self._ledger.tick)

    def label_live(self, why: str) -> None:
        """Give every storage that is live now this label, and the node that it was loaded for."""
        for key, storage in self._ledger.live_by_id().items():
            storage.label = Label(self._leaves.get(key), None, why)

    def relabel(self, storage_id: int, why: str) -> None:
        """Say better what a live storage is."""
        storage = self._ledger.storage(storage_id)
        if storage is not None:
            label = self.at(storage, self._ledger.tick)
            storage.label = replace(label, why=why, before=None)

    def at(self, storage: Storage, tick: int) -> Label:
        """What the storage was at `tick`; before its first label, what it became."""
        label: Label = storage.label or UNLABELLED
        while label.since > tick and label.before is not None:
            label = label.before
        return label
