"""What is alive after forward of a PyTorch module: module, op, line, steps, bytes by storage.

The ledger sees each storage as it is made, and says which are left: the account of `ckpt run`, made
in the same way. Which steps of the backward pass hold them PyTorch's graph tells, as far as
it was saved there: asked for what was packed, not for what it unpacks to, so that no checkpoint
computes anything again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ckptcli.measure.module_saved import ModuleSaved
from ckptcli.peers.torch_account import Account
from ckptcli.peers.torch_ledger import alive_after, counting
from ckptcli.peers.torch_module import ModuleNetwork
from ckptcli.peers.torch_storages import storage_key, storages

CHECKPOINT = "checkpoint"
"""What holds the arguments of a checkpoint."""


def saved_by_module(network: ModuleNetwork) -> list[ModuleSaved]:
    """What is held after one forward pass, largest first; one whole pass is run before.

    Parameters, buffers, input and loss are left out; views count with their storage.
    """
    module = network.user.module
    kinds = {path: type(part).__name__ for path, part in module.named_modules()}
    with (
        counting(Account, lambda: network.backward(network.forward())) as ledger,
        ledger.following(module),
    ):
        loss, alive = alive_after(ledger, network.forward, network.user.own_tensors())
    steps = _steps_by_storage(loss)
    found = []
    for key, size_bytes in alive.items():
        birth = ledger.births[key]
        source, library = birth.lines
        kind = kinds.get(birth.path, kinds[""])
        found.append(
            ModuleSaved(
                module=f"{birth.path} {kind}",
                ops=tuple(dict.fromkeys(steps.get(key, ()))),
                shape=birth.shape,
                dtype=birth.dtype,
                bytes=size_bytes,
                path=birth.path,
                kind=kind,
                op=birth.op,
                source=source,
                library=library,
            )
        )
    return sorted(found, key=lambda saved: -saved.bytes)


def _steps_by_storage(loss: torch.Tensor) -> dict[int, list[str]]:
    """Key of a storage -> the names of the steps that hold it, from the loss down."""
    found: dict[int, list[str]] = {}
    seen: set[Any] = set()
    waiting = [loss.grad_fn]
    while waiting:
        step = waiting.pop()
        if step is None or step in seen:
            continue
        seen.add(step)
        for saved in _saved_in(step):
            for holder, packed in ((step.name(), saved.data), (CHECKPOINT, _arguments(saved))):
                for key in _keys(packed):
                    found.setdefault(key, []).append(holder)
        waiting += [parent for parent, _ in step.next_functions][::-1]
    return found


def _keys(packed: Any) -> Iterator[int]:
    for tensor in tree_leaves(packed):
        if isinstance(tensor, torch.Tensor):
            yield from map(storage_key, storages(tensor))


def _saved_in(step: Any) -> Iterator[Any]:
    """What a step saved, each as it was packed."""
    for name in dir(step):
        if name.startswith("_raw_saved_"):
            saved = getattr(step, name, None)
            yield from (
                each
                for each in (saved if isinstance(saved, Sequence) else (saved,))
                if each is not None and hasattr(each, "data")
            )


def _arguments(saved: Any) -> list[Any]:
    """The arguments of the checkpoint that packed this, which no step leads to."""
    frames = [cell.cell_contents for cell in getattr(saved.unpack_hook, "__closure__", None) or ()]
    held = [each for frame in frames for each in getattr(frame, "saved_args", ())]
    savers = [getattr(frame, "input_saver", None) for frame in frames]  # PyTorch before 2.11
    held += [each for saver in savers if saver is not None for each in _saved_in(saver.grad_fn)]
    return [each.data for each in held if hasattr(each, "data")]
