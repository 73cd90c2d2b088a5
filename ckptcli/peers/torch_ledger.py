"""An account of the storages that PyTorch's ops make, as ckpt's ledger is of its own.

A dispatch mode sees every op's outputs, those of a recomputation included; a storage counts from
its birth until its last reference is gone. Scratch memory inside a kernel is not seen.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ckptcli.measure.memory import Memory
from ckptcli.peers.torch_storages import storage_key, storages
from ckptcli.peers.torch_sums import InPlaceSums


class StorageLedger(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is not checked
    """Inside, every new storage is counted. `calls` are the ops by name, as in `aten.NAME`."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, int] = {}
        self.bytes_in_use = 0
        self.peak_bytes = 0
        self.calls: Counter[str] = Counter()
        self._written_into = InPlaceSums()
        self._left: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op and count what it returns."""
        into = self._written_into(func, args, kwargs)
        result = func(*args, **(kwargs or {}))
        self.calls[func.overloadpacket.__name__] += 1
        if into is not None and into in self.live:
            self._go_on(into, result.untyped_storage())
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
                weakref.finalize(storage, self._let_go, key)
                self.born(key, tensor)

    def born(self, key: int, tensor: torch.Tensor) -> None:
        """A storage of `tensor` is counted from now on; for whoever keeps more than its bytes."""

    def start_phase(self) -> int:
        """Begin a new peak at what is live now; returns the one so far."""
        before_bytes, self.peak_bytes = self.peak_bytes, self.bytes_in_use
        return before_bytes

    def moved(self, key: int, to: int) -> None:
        """The storage goes on under another key: what is written into it without a watch."""
        self.live[to] = self.live.pop(key)

    def gone(self, key: int) -> None:
        """The storage has no reference any more."""
        self.bytes_in_use -= self.live.pop(key)

    def _go_on(self, key: int, storage: Any) -> None:
        to = storage_key(storage)
        self._left.add(key)
        weakref.finalize(storage, self._let_go, to)
        self.moved(key, to)

    def _let_go(self, key: int) -> None:
        if key in self._left:
            self._left.remove(key)
        else:
            self.gone(key)


@dataclass(frozen=True, slots=True)
class LedgerPass:
    """What one pass under the ledger found out; ops are named as in `aten.NAME`."""

    memory: Memory
    backward_calls: Counter[str]


def ledger_pass(
    forward: Callable[[], Any], backward: Callable[[Any], Any], base: Sequence[torch.Tensor]
) -> LedgerPass:
    """Run both phases twice; the second time counts.

    `base` are parameters and input: in the peak, not in what is saved. `forward` returns the loss.
    """
    with counting(StorageLedger, lambda: backward(forward())) as ledger:
        return counted(ledger, forward, backward, base)


Ledger = TypeVar("Ledger", bound=StorageLedger)


@contextmanager
def counting(kind: Callable[[], Ledger], before: Callable[[], object]) -> Iterator[Ledger]:
    """A ledger that counts what is inside, where nothing collects garbage; `before` is a pass that
    is run first, uncounted.
    """
    with StorageLedger():  # what the library sets up at first use is in no account
        before()
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with kind() as ledger:
            yield ledger
    finally:
        if was_enabled:
            gc.enable()


def alive_after(
    ledger: StorageLedger, forward: Callable[[], Any], base: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, dict[int, int]]:
    """The loss, and the bytes by key of what is alive after forward beside it and `base`."""
    for tensor in base:
        ledger.count(tensor)
    before = set(ledger.live)
    loss = forward()
    not_saved = before.union(map(storage_key, storages(loss)))
    return loss, {key: size for key, size in ledger.live.items() if key not in not_saved}


def counted(
    ledger: StorageLedger,
    forward: Callable[[], Any],
    backward: Callable[[Any], Any],
    base: Sequence[torch.Tensor],
    micro_batches: int = 1,
    step: Callable[[Any], None] | None = None,
) -> LedgerPass:
    """One pass under a ledger that is open; the rest as in `ledger_pass`.

    Of several micro-batches both phases run so often: saved is what the first holds, the peaks are
    the highest of all. `step` gets what the last backward returned.
    """
    for tensor in base:
        ledger.count(tensor)
    params_input_bytes = ledger.bytes_in_use
    saved: dict[int, int] = {}
    peaks = [ledger.start_phase()] * 2
    for number in range(micro_batches):
        loss, alive = alive_after(ledger, forward, base)
        saved = saved if number else alive
        peaks[0], after_forward_bytes = max(peaks[0], ledger.start_phase()), ledger.bytes_in_use
        ledger.calls.clear()
        result = backward(loss)
        peaks[1] = max(peaks[1], ledger.peak_bytes)
    after_backward_bytes = ledger.bytes_in_use
    ledger.start_phase()
    if step is not None:
        step(result)
    memory = Memory(
        saved_bytes=sum(saved.values()),
        saved_tensors=len(saved),
        params_input_bytes=params_input_bytes,
        after_forward_bytes=after_forward_bytes,
        ledger_peak_forward_bytes=peaks[0],
        ledger_peak_backward_bytes=peaks[1],
        traced_peak_forward_bytes=None,
        traced_peak_backward_bytes=None,
        peak_live=None,
        after_backward_bytes=after_backward_bytes,
        ledger_peak_step_bytes=None if step is None else ledger.peak_bytes,
    )
    del result
    return LedgerPass(memory, ledger.calls)
