"""An account of the storages that PyTorch's ops make, as ckpt's ledger is of its own.

A dispatch mode sees every op's outputs, those of a recomputation included; a storage counts from
its birth until its last reference is gone. Scratch memory inside a kernel is not seen.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ckptcli.peers.torch_storages import storage_key, storages


class StorageLedger(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is not checked
    """Inside, every new storage is counted. `calls` are the ops by name, as in `aten.NAME`."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, int] = {}
        self.bytes_in_use = 0
        self.peak_bytes = 0
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op and count what it returns."""
        result = func(*args, **(kwargs or {}))
        self.calls[func.overloadpacket.__name__] += 1
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.count(tensor)
        return result

    def count(self, tensor: torch.Tensor) -> None:
        """Count the tensor's storages, as far as they are not counted already."""
        for storage in storages(tensor):
            key = storage_key(storage)
            if key not in self.live:
                self.live[key] = storage.nbytes()
                self.bytes_in_use += storage.nbytes()
                self.peak_bytes = max(self.peak_bytes, self.bytes_in_use)
                weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        self.bytes_in_use -= self.live.pop(key)


@dataclass(frozen=True, slots=True)
class LedgerPass:
    """What one pass under the ledger found out; ops are named as in `aten.NAME`."""

    saved_bytes: int
    saved_tensors: int
    peak_bytes: int
    backward_calls: Counter[str]


def ledger_pass(
    forward: Callable[[], Any], backward: Callable[[Any], Any], base: Sequence[torch.Tensor]
) -> LedgerPass:
    """Run both phases twice; the second time counts.

    `base` are parameters and input: in the peak, not in what is saved. `forward` returns the loss.
    """
    with StorageLedger():  # what the library sets up at first use is in no account
        backward(forward())
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with StorageLedger() as ledger:
            for tensor in base:
                ledger.count(tensor)
            known = set(ledger.live)
            loss = forward()
            known.update(map(storage_key, storages(loss)))
            saved = [size for key, size in ledger.live.items() if key not in known]
            ledger.calls.clear()
            result = backward(loss)
            del result
            return LedgerPass(sum(saved), len(saved), ledger.peak_bytes, ledger.calls)
    finally:
        if was_enabled:
            gc.enable()
