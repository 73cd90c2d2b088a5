"""Records the calls of a pass: a backend whose namespace notes what is called with what.

Invariant: the recorder holds no array that the pass makes; a value is known by its number as long
as it lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ckptcli.backends.base import Array, Backend, Namespace
from ckptcli.backends.host_copy import HostCopy
from ckptcli.backends.random_keys import RandomKey
from ckptcli.backends.wrapped import WrappedBackend, WrappedNamespace
from ckptcli.errors import ReplayError
from ckptcli.replay.instructions import (
    Argument,
    Constant,
    Draw,
    Instruction,
    Layout,
    Several,
    Value,
    data_of,
)

TAKES_DATA = frozenset({"asarray", "asindices", "asbool", "array_like"})
"""Functions whose first argument may be data of the host."""


class CallRecorder:
    """The calls so far, and the numbers of the values that live.

    Attributes:
        calls: those of the half that is recorded; None while nothing is.
        externals: number -> array, of what was there before the pass and is used in it.
        draws: the keys of the pass and their numbers, in the order in which they came first.
        layouts: number -> how the value lies in memory.
    """

    def __init__(self, namespace: Namespace) -> None:
        self.layouts: dict[int, Layout] = {}
        self._namespace = namespace
        self._blocks: dict[int, int] = {}
        self._owners: dict[int, weakref.ref[Any]] = {}
        self.calls: list[Instruction] | None = None
        self.externals: dict[int, Any] = {}
        self.draws: dict[RandomKey, int] = {}
        self._numbers: dict[int, int] = {}
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._count = 0

    def begin(self) -> None:
        """A pass begins: numbers and draws from the start."""
        self._numbers.clear()
        self._blocks.clear()
        self._owners.clear()
        self.externals, self.draws, self.layouts, self._count = {}, {}, {}, 0

    def half(self) -> list[Instruction]:
        """Begin the next half; returns the list of its calls."""
        self.calls = []
        return self.calls

    def number_made(self, value: Any) -> int:
        """The number of a value that a call returned: a new one, or its own if it was there."""
        key = id(value)
        if key not in self._alive:
            self._alive[key] = weakref.ref(value, lambda _: self._forget(key))
        return self._numbers[key] if key in self._numbers else self._next(key, value)

    def number_of(self, value: Any) -> int:
        """The number of a value that a call made, in the pass or before it.

        Raises:
            ReplayError: an array that no call made.
        """
        key = id(value)
        if key in self._numbers:
            return self._numbers[key]
        if key not in self._alive:
            raise ReplayError(
                f"an array of shape {list(value.shape)} was made past the backend's functions",
                "run without --replay",
            )
        number = self._next(key, value)
        self.externals[number] = value
        return number

    def _next(self, key: int, value: Any) -> int:
        self._numbers[key] = number = self._count
        self._count += 1
        self._lay_out(number, value)
        return number

    def _lay_out(self, number: int, value: Any) -> None:
        """Note where a value lies; nothing of a library whose arrays have no `strides`."""
        if not isinstance(getattr(value, "strides", None), tuple):
            return
        owner = self._namespace.storage_of(value)
        key = id(owner)
        if key not in self._blocks:
            self._blocks[key] = number
            self._owners[key] = weakref.ref(owner, lambda _: self._forget_block(key))
        _, _, storage_bytes = self._namespace.storage_layout(value)
        form = (value.shape, self._namespace.dtype_name(value), value.strides)
        is_whole = self._namespace.nbytes(value) == storage_bytes
        self.layouts[number] = Layout(self._blocks[key], form, is_whole)

    def _forget_block(self, key: int) -> None:
        self._blocks.pop(key, None)
        self._owners.pop(key, None)

    def _forget(self, key: int) -> None:
        self._numbers.pop(key, None)
        self._alive.pop(key, None)

    def note(
        self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], call: Callable[[], Any]
    ) -> Any:
        """Make the call, and note it if a pass is recorded."""
        if self.calls is None:
            result = call()
            for made in _values(result):
                self.number_made(made)
            return result
        arguments = self._arguments(function, args)
        named = tuple(map(self._argument, kwargs.values()))
        result = call()
        made = _values(result)
        if made:
            numbers = tuple(map(self.number_made, made))
            names, is_one = tuple(kwargs), made[0] is result
            self.calls.append(Instruction(function, arguments, names, named, numbers, is_one))
        return result

    def _arguments(self, function: str, args: tuple[Any, ...]) -> tuple[Argument, ...]:
        if function in TAKES_DATA and id(args[0]) not in self._numbers:
            return (data_of(args[0]), *map(self._argument, args[1:]))
        return tuple(map(self._argument, args))

    def _argument(self, value: Any) -> Argument:
        if _is_value(value):
            return Value(self.number_of(value))
        if isinstance(value, RandomKey):
            return Draw(self.draws.setdefault(value, len(self.draws)))
        if isinstance(value, tuple | list):
            return Several(tuple(map(self._argument, value)), isinstance(value, list))
        return Constant(value)


def _is_value(value: Any) -> bool:
    return isinstance(value, HostCopy) or (hasattr(value, "nbytes") and hasattr(value, "shape"))


def _values(result: Any) -> list[Any]:
    """The values among what a call returned: itself, or those of a tuple."""
    if _is_value(result):
        return [result]
    if isinstance(result, tuple | list) and result and all(map(_is_value, result)):
        return list(result)
    return []


class CallNamespace(WrappedNamespace):
    """A namespace whose every call is noted."""

    def __init__(self, inner: Namespace, recorder: CallRecorder) -> None:
        super().__init__(inner)
        self._recorder = recorder

    def _seen(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        note = self._recorder.note

        def noted(*args: Any, **kwargs: Any) -> Any:
            return note(name, args, kwargs, lambda: function(*args, **kwargs))

        return noted


class CallBackend(WrappedBackend):
    """A backend whose every call is noted; inside a pass nothing reads a value."""

    def __init__(self, inner: Backend, recorder: CallRecorder) -> None:
        super().__init__(inner, CallNamespace(inner.namespace, recorder))
        self._recorder = recorder

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        note, inner = self._recorder.note, self._inner
        array: Array = note(
            "asarray", (data, dtype, copy), {}, lambda: inner.asarray(data, dtype, copy)
        )
        return array

    def to_numpy(self, array: Array) -> Any:
        if self._recorder.calls is not None:
            raise ReplayError(
                "the program reads a value inside its pass, which --replay would not read again",
                "run without --replay",
            )
        return self._inner.to_numpy(array)
