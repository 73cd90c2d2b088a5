"""Who holds what is live at the peak beside PyTorch's graph: an argument, an output, an attribute.

Another pass stops at the tick at which the first one was highest, and looks there.

Invariant: a storage is told of one holder, and of none where a step of the backward pass or a
checkpoint holds it that has computed it again.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ckptcli.measure.memory import Holder
from ckptcli.peers.torch_account import BACKWARD, Account
from ckptcli.peers.torch_arguments import CLOSURE, Arguments
from ckptcli.peers.torch_graph import held_by_steps, keys_reached
from ckptcli.peers.torch_module import ModuleNetwork
from ckptcli.peers.torch_paths import WHOLE

OUTPUT, ATTRIBUTE, GLOBAL = "output", "attribute", "global"
_OF_MODULES = ("_parameters", "_buffers", "_modules")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


@dataclass(slots=True)
class Holders:
    """What was found at the peak.

    Attributes:
        largest: the holders, the one with the most bytes first.
        of: place of a storage in the account's history -> the names of its holders.
        sizes: of all storages that were made by then, to tell that the passes are the same.
    """

    largest: list[Holder] = field(default_factory=list)
    of: dict[int, tuple[str, ...]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)


class HolderAccount(Account):
    """An account that looks for holders, at a tick or when it is told to; `root` is the step of the
    loss.
    """

    def __init__(self, network: ModuleNetwork, arguments: Arguments, at: int | None = None) -> None:
        super().__init__()
        self.root: Any = None
        self.holders = Holders()
        self._at = at
        self._network = network
        self._arguments = arguments

    def born(self, key: int, tensor: torch.Tensor) -> None:
        super().born(key, tensor)
        if self.tick == self._at:
            self.look()

    def look(self) -> None:
        """See who holds what is live now."""
        found = self.holders
        found.sizes = [birth.size_bytes for birth in self.history]
        places = {id(birth): i for i, birth in enumerate(self.history)}
        steps = held_by_steps([self.root])
        open_keys = {
            key
            for key, birth in self.births.items()
            if not birth.why and birth.phase != BACKWARD and key not in steps
        }
        names = {key: tuple(dict.fromkeys(steps.get(key, ()))) for key in self.births}
        for holder, value in self._candidates():
            keys = keys_reached(value) & open_keys
            open_keys -= keys
            if keys:
                holder.tensors = len(keys)
                holder.bytes = sum(self.births[key].size_bytes for key in keys)
                found.largest.append(holder)
                names |= dict.fromkeys(keys, (f"{holder.role} {holder.name}".strip(),))
        found.largest.sort(key=lambda holder: -holder.bytes)
        found.of = {places[id(self.births[key])]: held for key, held in names.items()}

    def _candidates(self) -> Iterator[tuple[Holder, Any]]:
        for held in self._arguments.alive():
            yield (
                Holder(
                    name=held.name,
                    role=held.role,
                    kind=held.kind,
                    checkpoints=len(held.checkpoints),
                    all_checkpoints=self._arguments.checkpoints,
                ),
                held.value(),
            )
        output = self._network.held_output
        if output is not None:
            yield Holder("", OUTPUT, type(output).__name__), output
        for path, part in self._network.user.module.named_modules():
            yield from _of_module(path, part)
        for name, value in getattr(self._network.user.make, "__globals__", {}).items():
            if not isinstance(value, types.ModuleType | type | types.FunctionType):
                yield Holder(name, GLOBAL, type(value).__name__), value


def _of_module(path: str, part: torch.nn.Module) -> Iterator[tuple[Holder, Any]]:
    prefix = "" if path in ("", WHOLE) else f"{path}."
    for name, value in vars(part).items():
        if name in _HOOKS:
            for hook in value.values():
                yield from _closed_over(hook, prefix.rstrip("."))
        elif name not in _OF_MODULES:
            yield Holder(f"{prefix}{name}", ATTRIBUTE, type(value).__name__), value
            yield from _closed_over(value, f"{prefix}{name}")


def _closed_over(function: Any, where: str) -> Iterator[tuple[Holder, Any]]:
    if isinstance(function, types.FunctionType):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            yield Holder(f"{function.__name__}.{name}", CLOSURE, where), value
