"""What autograd holds for a module after forward: module, steps, shape, bytes by unique storage.

Saved-tensor hooks see each tensor as it is packed, and during which module. Which step of the
backward pass holds it is found afterwards: asking a step for its saved tensors unpacks them, by the
number that packing gave.

Source: PyTorch, "Hooks for autograd saved tensors".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from ckptcli.checkpoint.user_code import running
from ckptcli.measure.module_saved import ModuleSaved
from ckptcli.peers.torch_module import SMALLER, ModuleNetwork, UserModule
from ckptcli.peers.torch_places import Places
from ckptcli.peers.torch_storages import storage_key, storages


class _Packed:
    """The tensors that were packed, each with the module it was packed in."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.modules: list[str] = []
        self.path: list[str] = []
        self.asked: list[int] = []

    def pack(self, tensor: torch.Tensor) -> int:
        self.tensors.append(tensor)
        self.modules.append(self.path[-1] if self.path else "")
        return len(self.tensors) - 1

    def unpack(self, number: int) -> torch.Tensor:
        self.asked.append(number)
        return self.tensors[number]


def saved_by_module(user: UserModule, seed: int) -> list[ModuleSaved]:
    """What is held after one forward pass, largest first.

    Parameters, buffers, input and loss are left out; views count with their storage.

    Raises:
        ProgramError: the module fails; names the line and the part.
    """
    packed, places = _Packed(), Places()
    following = places.following(user.module)
    with running(user.text, SMALLER, places.text), following, _watched(user.module, packed):
        with saved_tensors_hooks(packed.pack, packed.unpack):
            loss = ModuleNetwork(user, seed).forward()
        steps = _steps_by_tensor(loss, packed)
    own = (*user.own_tensors(), loss)
    left_out = {storage_key(storage) for tensor in own for storage in storages(tensor)}
    return _by_storage(packed, steps, left_out)


def _by_storage(
    packed: _Packed, steps: dict[int, list[str]], left_out: set[int]
) -> list[ModuleSaved]:
    found: dict[int, ModuleSaved] = {}
    for number, tensor in enumerate(packed.tensors):
        for storage in storages(tensor):
            key = storage_key(storage)
            if key in left_out:
                continue
            before = found.get(key)
            ops = (*(before.ops if before else ()), *steps.get(number, ()))
            found[key] = ModuleSaved(
                module=before.module if before else packed.modules[number],
                ops=tuple(dict.fromkeys(ops)),
                shape=before.shape if before else tuple(tensor.shape),
                dtype=str(tensor.dtype).removeprefix("torch."),
                bytes=storage.nbytes(),
            )
    return sorted(found.values(), key=lambda saved: -saved.bytes)


@contextmanager
def _watched(module: torch.nn.Module, packed: _Packed) -> Iterator[None]:
    """Inside, `packed.path` ends in the module that runs."""
    handles = []
    for name, part in module.named_modules():
        label = f"{name or '(module)'} {type(part).__name__}"

        def enter(part: Any, arguments: Any, label: str = label) -> None:
            packed.path.append(label)

        def leave(part: Any, arguments: Any, output: Any) -> None:
            packed.path.pop()

        handles += [
            part.register_forward_pre_hook(enter),
            part.register_forward_hook(leave, always_call=True),
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _steps_by_tensor(loss: torch.Tensor, packed: _Packed) -> dict[int, list[str]]:
    """Number of a packed tensor -> the names of the steps that hold it, from the loss down."""
    found: dict[int, list[str]] = {}
    seen: set[Any] = set()
    waiting = [loss.grad_fn]
    while waiting:
        step = waiting.pop()
        if step is None or step in seen:
            continue
        seen.add(step)
        for number in _held_by(step, packed):
            found.setdefault(number, []).append(step.name())
        waiting += [parent for parent, _ in step.next_functions][::-1]
    return found


def _held_by(step: Any, packed: _Packed) -> Sequence[int]:
    """The numbers of the tensors that a step unpacks when it is asked for them."""
    packed.asked.clear()
    for name in dir(step):
        if name.startswith("_saved_") or name == "saved_tensors":
            getattr(step, name, None)
    return tuple(packed.asked)
