"""What a function calls the tensors that it uses: `w1`, `layers[0].w`, `params['bias']`.

A name is the shortest way from the function to the tensor, written as the function's own code would
write it: over the variables that it captures and their defaults, attributes of the object that it
belongs to, lists and mappings.
"""

from __future__ import annotations

import functools
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

from ckptcli.autodiff.tensor import Tensor

MOST_OBJECTS = 100_000
"""Looked at before the search ends: a program may capture its whole data set."""

_PLAIN = (str, bytes, int, float, complex, type(None), type, ModuleType)


def names_of(tensors: Sequence[Tensor], function: Callable[..., Any]) -> list[str]:
    """A name for each tensor, by node; `leaf 3` for the fourth if the function reaches it not.

    No two are the same.
    """
    wanted = {tensor.node.id for tensor in tensors}
    found: dict[int, str] = {}
    for path, value in _reachable(function):
        if isinstance(value, Tensor) and value.node.id in wanted:
            found.setdefault(value.node.id, path)
            if len(found) == len(wanted):
                break
    return [found.get(t.node.id, f"leaf {number}") for number, t in enumerate(tensors)]


def _reachable(root: Any) -> Iterator[tuple[str, Any]]:
    """Every object that `root` reaches, each once, with its path, nearest first."""
    queue: deque[tuple[str, Any]] = deque([("", root)])
    seen = {id(root)}
    while queue and len(seen) < MOST_OBJECTS:
        path, value = queue.popleft()
        yield path, value
        for step, child in _steps(value):
            if id(child) not in seen and not isinstance(child, _PLAIN):
                seen.add(id(child))
                queue.append((_joined(path, step), child))


def _joined(path: str, step: str) -> str:
    return path + step if not path or step.startswith("[") else f"{path}.{step}"


def _steps(value: Any) -> list[tuple[str, Any]]:
    try:
        return list(_children(value))
    except Exception:  # an object of the user's may do anything when it is looked at
        return []


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object refers to, by variable, attribute or index."""
    if isinstance(value, Tensor):
        return
    if isinstance(value, FunctionType):
        yield from _captured(value)
    elif isinstance(value, MethodType):
        yield from _children(value.__self__)
        yield from _children(value.__func__)
    elif isinstance(value, functools.partial):
        bound = inspect.signature(value.func).bind_partial(*value.args, **value.keywords)
        yield from bound.arguments.items()
        yield from _children(value.func)
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", child) for key, child in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"[{index}]", child) for index, child in enumerate(value))
    else:
        yield from getattr(value, "__dict__", {}).items()


def _captured(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables that a function, or the one that it wraps, takes along."""
    inner = inspect.unwrap(function)
    for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
    for name, parameter in inspect.signature(inner).parameters.items():
        if parameter.default is not parameter.empty:
            yield name, parameter.default
