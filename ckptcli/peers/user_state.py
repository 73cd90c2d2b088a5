"""What a function of the user's own keeps outside its arguments, before and after a call.

Looked at are the globals of its file, what it captures, and the attributes of objects among them:
numbers and texts by their value, lists, dicts and sets by their size. More would need copies.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

_SCALARS = (bool, int, float, str, type(None))
_CONTAINERS = (list, dict, set)


class HasLoss(Protocol):
    """What has a function of the user's."""

    @property
    def loss(self) -> Any: ...


def user_state(user: HasLoss) -> dict[str, object]:
    """Name -> value, or size, of everything that is looked at."""
    function, owners = _plain(user.loss)
    found = dict(state_of_mapping("", getattr(function, "__globals__", {})))
    for owner in owners:
        found |= dict(state_of_mapping("self.", getattr(owner, "__dict__", {})))
    if inspect.isfunction(function):
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        found |= dict(state_of_mapping("", dict(zip(names, map(_content, cells)))))
    return found


def moved(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """A phrase for each that a call changed, `` `COUNT` goes from 1 to 2 ``."""
    return [
        f"`{name}` goes from {_short(before.get(name))} to {_short(value)}"
        for name, value in after.items()
        if before.get(name) != value
    ]


def _plain(function: Any) -> tuple[Any, list[Any]]:
    """The function itself, of one that is wrapped, bound or called with some arguments, and the
    objects that it is bound to.
    """
    owners: list[Any] = []
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            owners.append(function.__self__)
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not inspect.isfunction(function) and inspect.ismethod(
            getattr(function, "__call__", None)  # noqa: B004 - the method itself is wanted
        ):
            function = function.__call__
        else:
            return function, owners


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def state_of_mapping(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Name -> value, or size, of what is looked at among these, and without a prefix of the
    attributes of objects among them.
    """
    for name, value in list(values.items()):
        if name.startswith("__"):
            continue
        yield from _of_value(f"{prefix}{name}", value)
        own = getattr(value, "__dict__", None)
        if not prefix and isinstance(own, dict) and not _is_code(value):
            yield from state_of_mapping(f"{name}.", own)


def _is_code(value: Any) -> bool:
    return isinstance(value, type) or inspect.ismodule(value) or inspect.isroutine(value)


def _of_value(name: str, value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, _SCALARS):
        yield name, value
    elif type(value) in _CONTAINERS:
        yield name, _Size(len(value))


class _Size(int):
    """How many elements a container has."""

    def __repr__(self) -> str:
        return f"{int(self)} elements"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
