"""What the steps of PyTorch's backward pass hold.

They are asked for what was packed, not for what it unpacks to, so that no checkpoint computes
anything again.

Source: `torch/csrc/autograd/saved_variable.h`; `_CheckpointFrame` in `torch/utils/checkpoint.py`.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ckptcli.peers.torch_storages import storage_key, storages

CHECKPOINT = "checkpoint"
"""What holds the arguments of a checkpoint, and what it has computed again."""

MOST_OBJECTS = 100_000
"""An object that leads to more than these is not looked through whole."""

_NOT_LOOKED_INTO = (torch.nn.Module, type, types.ModuleType, types.FunctionType)


def held_by_steps(roots: Iterable[Any]) -> dict[int, list[str]]:
    """Key of a storage -> the names of the steps that hold it, from these steps down."""
    found: dict[int, list[str]] = {}
    for step in _steps(roots):
        for saved in saved_in(step):
            for holder, packed in ((step.name(), saved.data), (CHECKPOINT, _in_checkpoint(saved))):
                for key in keys_in(packed):
                    found.setdefault(key, []).append(holder)
        for name, value in _on_context(step):
            for key in keys_in(value):
                found.setdefault(key, []).append(f"ctx.{name} of {step.name()}")
    return found


def tensors_in_steps(roots: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors that the steps hold, from these steps down."""
    for step in _steps(roots):
        for saved in saved_in(step):
            for leaf in tree_leaves((saved.data, _in_checkpoint(saved))):
                if isinstance(leaf, torch.Tensor):
                    yield leaf


def _steps(roots: Iterable[Any]) -> Iterator[Any]:
    """Each step once, from these down."""
    seen: set[Any] = set()
    waiting = list(roots)
    while waiting:
        step = waiting.pop()
        if step is None or step in seen:
            continue
        seen.add(step)
        yield step
        waiting += [parent for parent, _ in step.next_functions][::-1]


def _on_context(step: Any) -> list[tuple[str, Any]]:
    """What a function of the user's own keeps for its backward as an attribute, which no checkpoint
    lets go of: the step is the `ctx` of its forward.
    """
    is_own = isinstance(step, torch.autograd.function.BackwardCFunction)
    return list(vars(step).items()) if is_own else []


def keys_in(values: Any) -> Iterator[int]:
    """The storages of the tensors in a container."""
    for tensor in tree_leaves(values):
        if isinstance(tensor, torch.Tensor):
            yield from map(storage_key, storages(tensor))


def keys_reached(value: Any) -> set[int]:
    """The storages of the tensors in an object, wherever they are, and of what the steps hold that
    lead to these tensors.
    """
    keys: set[int] = set()
    steps: list[Any] = []
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) < MOST_OBJECTS:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, torch.Tensor):
            keys.update(map(storage_key, storages(found)))
            steps.append(found.grad_fn)
        elif not isinstance(found, _NOT_LOOKED_INTO):
            waiting += _inside(found)
    return keys | held_by_steps(steps).keys()


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return list(getattr(value, "__dict__", {}).values())


def saved_in(step: Any) -> Iterator[Any]:
    """What a step saved, each as it was packed; nothing once it has run."""
    for name in dir(step):
        if name.startswith("_raw_saved_"):
            try:
                saved = getattr(step, name, None)
            except RuntimeError:  # released
                continue
            yield from (
                each
                for each in (saved if isinstance(saved, Sequence) else (saved,))
                if each is not None and hasattr(each, "data")
            )


def _in_checkpoint(saved: Any) -> list[Any]:
    """The arguments of the checkpoint that packed this, which no step leads to, and what it has
    computed again.
    """
    frames = [cell.cell_contents for cell in getattr(saved.unpack_hook, "__closure__", None) or ()]
    held = [each for frame in frames for each in getattr(frame, "saved_args", ())]
    savers = [getattr(frame, "input_saver", None) for frame in frames]  # PyTorch before 2.11
    held += [each for saver in savers if saver is not None for each in saved_in(saver.grad_fn)]
    again = [getattr(frame, "recomputed", None) or {} for frame in frames]
    recomputed = [t for passes in again for one in passes.values() for t in one.values()]
    return [*(each.data for each in held if hasattr(each, "data")), *recomputed]
