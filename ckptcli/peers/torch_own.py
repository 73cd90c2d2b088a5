"""Checkpoints that a PyTorch module makes itself: counted, turned off, its framework's turned on.

A module that checkpoints itself calls `torch.utils.checkpoint.checkpoint`, from wherever its file
or a framework took that function; what that one calls in turn is replaced here, for the whole
process and as long as a context is open.

Invariant: PyTorch is afterwards as it was.
Source: `torch/utils/checkpoint.py`: `checkpoint` runs the function inside
`_checkpoint_without_reentrant_generator`, or through `CheckpointFunction.apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.checkpoint as library

from ckptcli.peers.base import NoPeer

_GENERATOR, _FUNCTION = "_checkpoint_without_reentrant_generator", "CheckpointFunction"
THEIRS = (getattr(library, _GENERATOR), getattr(library, _FUNCTION))
"""PyTorch's own: the generator, and the autograd function of the older kind."""
_in_force = [THEIRS]
"""What a checkpoint that is made runs: PyTorch's own, or what watches them."""

_SWITCHES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "activation_checkpointing_enable": ((), {}),
    "gradient_checkpointing_enable": ((), {}),
    "set_grad_checkpointing": ((True,), {}),
}
"""What frameworks call to turn checkpoints on: transformers from 5 on and before, timm."""


def _plain(function: Callable[..., Any], *settings: Any, **keywords: Any) -> Iterator[None]:
    """In place of the generator: nothing is saved otherwise, and nothing computed again."""
    del function, settings, keywords
    yield


class _Plain:
    """In place of the autograd function: what it wraps runs as it is."""

    @staticmethod
    def apply(function: Callable[..., Any], preserve: bool, *arguments: Any) -> Any:
        del preserve
        return function(*arguments)


@contextmanager
def _replaced(generator: Any, function: Any) -> Iterator[None]:
    before = getattr(library, _GENERATOR), getattr(library, _FUNCTION)
    setattr(library, _GENERATOR, generator)
    setattr(library, _FUNCTION, function)
    try:
        yield
    finally:
        setattr(library, _GENERATOR, before[0])
        setattr(library, _FUNCTION, before[1])


@contextmanager
def without_own_checkpoints() -> Iterator[None]:
    """Inside, calls of `checkpoint` run what they are given, and nothing else."""
    with _replaced(_plain, _Plain):
        yield


@contextmanager
def with_checkpoints() -> Iterator[None]:
    """Inside, `checkpoint` is PyTorch's, also where it was turned off."""
    with _replaced(*_in_force[-1]):
        yield


@contextmanager
def watched_checkpoints(generator: Any, function: Any) -> Iterator[None]:
    """Inside, these two run in place of PyTorch's, wherever a checkpoint is made."""
    _in_force.append((generator, function))
    try:
        with _replaced(generator, function):
            yield
    finally:
        _in_force.pop()


@contextmanager
def counted_checkpoints() -> Iterator[list[str]]:
    """Inside, each call of `checkpoint` adds its kind to the list, and runs as it is."""
    calls: list[str] = []
    generator, function = THEIRS

    def counting(*arguments: Any, **keywords: Any) -> Any:
        calls.append("non-reentrant")
        return generator(*arguments, **keywords)

    class Counting:
        @staticmethod
        def apply(*arguments: Any) -> Any:
            calls.append("reentrant")
            return function.apply(*arguments)

    with _replaced(counting, Counting):
        yield calls


def around(call: Callable[..., Any]) -> Callable[..., Any]:
    """A caller of regions whose own checkpoint is made, and none of those inside the region."""

    def checkpointed(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        def inner(*given: Any, **named: Any) -> Any:
            with without_own_checkpoints():
                return function(*given, **named)

        with with_checkpoints():
            return call(inner, *arguments, **keywords)

    return checkpointed


def turn_on_framework(module: torch.nn.Module) -> str:
    """Have the module's framework checkpoint it; the name of what did.

    Raises:
        NoPeer: no framework that is known, or one that cannot for this module.
    """
    for name, (arguments, keywords) in _SWITCHES.items():
        found = _with_switch(module, name)
        if found is None:
            continue
        try:
            getattr(found[1], name)(*arguments, **keywords)
        except (ValueError, NotImplementedError) as error:
            raise NoPeer(f"`{name}` of the module refuses: {error}") from error
        return name
    raise NoPeer(f"the module has no `{'`, no `'.join(_SWITCHES)}`")


def framework_call(module: torch.nn.Module) -> tuple[str, str] | None:
    """Which part's switch `turn_on_framework` calls, by its path, and the call: `NAME(True)`."""
    for name, (arguments, _) in _SWITCHES.items():
        found = _with_switch(module, name)
        if found is not None:
            return found[0], f"{name}({', '.join(map(repr, arguments))})"
    return None


def _with_switch(module: torch.nn.Module, name: str) -> tuple[str, torch.nn.Module] | None:
    """The outermost part that has it."""
    return next((part for part in module.named_modules() if hasattr(part[1], name)), None)
