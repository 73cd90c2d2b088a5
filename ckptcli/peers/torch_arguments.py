"""What the checkpoints of a pass are given besides tensors, by name: arguments and closures.

Such an object is kept until the block is computed again, and so is all that it has become by then.

Invariant: nothing is kept alive by being watched.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from ckptcli.peers.torch_own import THEIRS, watched_checkpoints

ARGUMENT, CLOSURE = "argument", "closure"
_OURS = "ckptcli."
_NO_HOLDER: tuple[Any, ...] = (torch.nn.Module, torch.Tensor, type, types.FunctionType)
_NO_HOLDER += (int, float, str, type(None))


@dataclass(slots=True)
class Held:
    """An object that checkpoints keep.

    Attributes:
        name: of the argument, or of the variable of the function around which the checkpoint is.
        role: argument or closure.
        kind: the object's class.
        value: gives the object, None once it is gone.
        checkpoints: the numbers of those that keep it.
    """

    name: str
    role: str
    kind: str
    value: Callable[[], Any]
    checkpoints: set[int] = field(default_factory=set)


class Arguments:
    """The objects that the checkpoints of a pass are given, besides tensors."""

    def __init__(self) -> None:
        self.checkpoints = 0
        self._held: dict[tuple[str, int], Held] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, every checkpoint that is made is asked for its arguments."""
        generator, older = THEIRS
        settings = _settings_of(generator)

        def watched(function: Callable[..., Any], *given: Any, **keywords: Any) -> Any:
            self._made(function, given[settings:], keywords)
            return generator(function, *given, **keywords)

        class Watched:
            @staticmethod
            def apply(function: Callable[..., Any], preserve: bool, *arguments: Any) -> Any:
                self._made(function, arguments, {})
                return older.apply(function, preserve, *arguments)

        with watched_checkpoints(watched, Watched):
            yield

    def alive(self) -> list[Held]:
        """Those that still exist, in the order in which they were met."""
        return [held for held in self._held.values() if held.value() is not None]

    def _made(
        self, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> None:
        self.checkpoints += 1
        for role, name, value in _given(function, arguments, keywords):
            try:
                reference = weakref.ref(value)
            except TypeError:
                continue
            key = (name, id(value))
            if key not in self._held or self._held[key].value() is not value:
                self._held[key] = Held(name, role, type(value).__name__, reference)
            self._held[key].checkpoints.add(self.checkpoints)


def _settings_of(generator: Callable[..., Any]) -> int:
    """How many settings PyTorch's generator takes between the function and its arguments."""
    kinds = [parameter.kind for parameter in inspect.signature(generator).parameters.values()]
    return kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) - 1


def _given(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Iterator[tuple[str, str, Any]]:
    """Role, name and value of each object that a checkpoint keeps."""
    bound: dict[str, Any] = dict(keywords)
    closed: dict[str, Any] = {}
    module: torch.nn.Module | None = None
    waiting: list[Any] = [function]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, functools.partial):
            bound |= inner.keywords
            waiting.append(inner.func)
        elif isinstance(inner, types.MethodType):
            owner = inner.__self__
            module = owner if module is None and isinstance(owner, torch.nn.Module) else module
        elif isinstance(inner, list):
            waiting += inner
        elif isinstance(inner, torch.nn.Module):
            module = inner if module is None else module
        elif isinstance(inner, types.FunctionType):
            variables = _variables(inner)
            if str(inner.__module__).startswith(_OURS):
                waiting += variables.values()
            else:
                closed |= variables
    names = _names_of(module)
    positional = {
        names[i] if i < len(names) else f"argument {i}": v for i, v in enumerate(arguments)
    }
    for role, values in ((ARGUMENT, {**positional, **bound}), (CLOSURE, closed)):
        for name, value in values.items():
            if not isinstance(value, _NO_HOLDER):
                yield role, name, value


def _variables(function: types.FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    return found


def _names_of(module: torch.nn.Module | None) -> list[str]:
    if module is None:
        return []
    try:
        return list(inspect.signature(module.forward).parameters)
    except (TypeError, ValueError):
        return []
