"""What ckpt says of structures that people train, beside PyTorch's own accounts of the same step.

    scripts/bench modules [NAME ...] [--markdown]

`saved` is held against saved-tensor hooks, the ledger's peak against `MemTracker`, the peak with
the workspace of kernels against the memory events of the tracing profiler. `=` is equal to the
byte; else the other figure stands there, and below the table why.
"""

from __future__ import annotations

import argparse
import gc
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from structures import Maker, structures
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import ProfilerActivity, profile as profiled

from ckptcli import units
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan, collector_off
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.torch_loading import load_module
from ckptcli.peers.torch_module import ModuleNetwork
from ckptcli.peers.torch_storages import storage_key, storages
from ckptcli.torch import profile

STRATEGIES = ("remat", "framework")
HEAD = ("structure", "blocks", "saved", "hooks", "peak", "MemTracker", "with workspace", "events")
SEED = 0
_OUT_OF_PLACE = (
    "PyTorch computes the derivative of an op another way where a mode watches, MemTracker's or "
    "ckpt's"
)


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What PyTorch says of the step without a checkpoint; bytes."""

    hooks: int
    tracker: int | str
    """Or why it does not tell."""
    events: int


def witnesses(make: Maker) -> Witnesses:
    torch.manual_seed(SEED)
    step = make()
    request = ModuleRequest(type(step.module).__name__, None, step=step)
    network = ModuleNetwork(load_module(request, SEED), SEED)
    network.backward(network.forward())
    with collector_off():
        hooks = saved_by_hooks(network)
        gc.collect()
        tracker = peak_by_tracker(network)
        gc.collect()
        return Witnesses(hooks, tracker, peak_by_events(network))


def saved_by_hooks(network: ModuleNetwork) -> int:
    """Of all storages that autograd packs, parameters, buffers and input left out."""
    base = {storage_key(s) for t in network.user.own_tensors() for s in storages(t)}
    sizes: dict[int, int] = {}
    kept = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        for storage in storages(tensor):
            if storage_key(storage) not in base:
                sizes[storage_key(storage)] = storage.nbytes()
                kept.append(storage)  # so that no other takes its place
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = network.forward()
    network.backward(loss)
    return sum(sizes.values())


def peak_by_tracker(network: ModuleNetwork) -> int | str:
    if not all(parameter.requires_grad for parameter in network.user.module.parameters()):
        return "MemTracker puts a hook on each parameter, and frozen ones take none"
    tracker = MemTracker()
    tracker.track_external(network.user.module, *network.user.input_tensors())
    with tracker:
        network.backward(network.forward())
    return sum(found["Total"] for found in tracker.get_tracker_snapshot("peak").values())


def peak_by_events(network: ModuleNetwork) -> int:
    tensors = network.user.own_tensors()
    base = {storage_key(s): s.nbytes() for t in tensors for s in storages(t)}
    with profiled(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        result = network.backward(network.forward())
    del result
    events = recorded.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    now = highest = 0
    for _, change in changes:
        now += change
        highest = max(highest, now)
    return sum(base.values()) + highest


def record_of(make: Maker) -> RunRecord:
    torch.manual_seed(SEED)
    return profile(make(), strategies=STRATEGIES, plan=Plan(reps=1, warmup=0, seed=SEED))


def cells(name: str, make: Maker) -> tuple[list[str], list[str]]:
    """A row of the table, and why figures are not there or not the same."""
    record, seen = record_of(make), witnesses(make)
    none, *others = record.rows
    assert none.memory is not None
    memory = none.memory
    notes = [f"{row.strategy}: {row.reason}" for row in others if row.reason is not None]
    if isinstance(seen.tracker, str):
        notes.append(seen.tracker)
    if memory.ledger_peak_bytes is not None and seen.events < memory.ledger_peak_bytes:
        notes.append(_OUT_OF_PLACE)
    return [
        name,
        str(len(record.children)),
        _bytes(memory.saved_bytes),
        _beside(memory.saved_bytes, seen.hooks),
        _bytes(memory.ledger_peak_bytes),
        _beside(memory.ledger_peak_bytes, seen.tracker),
        _bytes(memory.peak_bytes),
        _beside(memory.peak_bytes, seen.events),
        *(_bytes(row.memory.ledger_peak_bytes if row.memory else None) for row in others),
    ], notes


def _bytes(size: int | None) -> str:
    return units.UNKNOWN if size is None else f"{size:,}"


def _beside(own: int | None, other: int | str) -> str:
    if isinstance(other, str):
        return units.UNKNOWN
    return "=" if own == other else f"{other:,}"


def show(rows: Sequence[Sequence[str]], notes: Mapping[str, Sequence[str]], markdown: bool) -> None:
    head = [*HEAD, *STRATEGIES]
    if markdown:
        print(f"| {' | '.join(head)} |\n| --- |{' ---: |' * (len(head) - 1)}")
        for row in rows:
            print(f"| {' | '.join(row)} |")
    else:
        widths = [max(map(len, column)) for column in zip(head, *rows)]
        for row in (head, *rows):
            print("  ".join(cell.rjust(width) for cell, width in zip(row, widths)))
    for note, names in notes.items():
        print(f"{'- ' if markdown else ''}{', '.join(names)}: {note}")


def main() -> None:
    known = structures()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--markdown", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    rows: list[list[str]] = []
    notes: dict[str, list[str]] = {}
    for name in chosen.names or known:
        row, told = cells(name, known[name])
        rows.append(row)
        for note in told:
            notes.setdefault(note, []).append(name)
    show(rows, notes, chosen.markdown)


if __name__ == "__main__":
    main()
