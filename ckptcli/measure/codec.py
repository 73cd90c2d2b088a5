"""Frozen dataclasses as plain data for JSON, and back; `ckptcli.measure.fields` says how.

Invariants: what was written reads back as equal, but for numbers that JSON does not have; what is
read is what the type hints say, down to the last element, or a `DataError` that names the place. A
key that is missing has the default of its field; one that is not known is passed over.

Neither msgspec nor cattrs has flat fields, derived keys, and a place in every error at once.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from functools import cache, partial
from typing import Any, Literal, TypeVar

from ckptcli.measure.fields import (
    LARGEST_COUNT,
    Entry,
    MayBeInfinite,
    class_in,
    entries_of,
    keys_of,
    options_of,
    without_marks,
)

Data = TypeVar("Data")

_SCALARS = (str, int, float, bool, type(None))
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    type(None): "null",
    list: "a list",
    dict: "an object",
}


class DataError(ValueError):
    """Data that is not what a class says; the text names the place and the value."""

    def __init__(self, complaint: str, place: str = "") -> None:
        super().__init__(complaint)
        self.place = place

    def __str__(self) -> str:
        return f"{self.place.lstrip('.') or 'the whole'} {super().__str__()}"


def written(value: Any) -> Any:
    """`value` as dicts, lists and scalars."""
    if isinstance(value, _SCALARS):
        return value
    if dataclasses.is_dataclass(value):
        return _written_object(value)
    if isinstance(value, Mapping):
        return {key: written(item) for key, item in value.items()}
    return [written(item) for item in value]


def _written_object(value: Any) -> dict[str, Any]:
    data: dict[str, Any] = {}
    kind: Any = type(value)
    for entry in entries_of(kind):
        attribute = getattr(value, entry.name)
        if not entry.is_flat:
            data[entry.key] = written(attribute)
        elif attribute is None:
            data |= dict.fromkeys(keys_of(class_in(entry.hint)))
        else:
            data |= _written_object(attribute)
    return data


def with_finite_numbers(value: Any, path: str, warnings: list[str]) -> Any:
    """`value` with null for each number that JSON cannot hold; `warnings` learns where."""
    if isinstance(value, dict):
        return {
            key: with_finite_numbers(item, f"{path}.{key}", warnings) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [with_finite_numbers(item, f"{path}[{i}]", warnings) for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        warning = f"{path.lstrip('.')} is {value}, printed as null"
        if warning not in warnings:  # a record that was read back has it already
            warnings.append(warning)
        return None
    return value


def read(kind: type[Data], data: Any) -> Data:
    """An object of the dataclass from plain data; lists become tuples.

    Raises:
        DataError: a key is missing, or a value is not what its hint says.
    """
    if not isinstance(data, Mapping):
        raise _mismatch(data, kind)
    return kind(**dict(_fields(kind, data)))


def _fields(kind: type, data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for entry in entries_of(kind):
        if entry.is_derived:
            continue
        if entry.is_flat:
            yield entry.name, _read_flat(entry, data)
        elif entry.key in data:
            with _within(f".{entry.key}"):
                yield entry.name, _read_value(data[entry.key], entry.hint)
        elif entry.default is MISSING:
            raise DataError("is missing", f".{entry.key}")


def _read_flat(entry: Entry, data: Mapping[str, Any]) -> Any:
    kind = class_in(entry.hint)
    is_optional = type(None) in options_of(entry.hint)
    if is_optional and all(data.get(key) is None for key in keys_of(kind)):
        return None
    return read(kind, data)


class _within:
    """A place that a `DataError` raised inside is below."""

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, DataError):
            error.place = self._place + error.place


def _read_value(value: Any, hint: Any) -> Any:
    for option in options_of(hint):
        if _is_kind(value, option):
            return _reader(option)(value)
    raise _mismatch(value, hint)


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """What reads a value of the right kind."""
    bare, _ = without_marks(hint)
    if dataclasses.is_dataclass(bare):
        return partial(read, class_in(bare))
    origin, arguments = typing.get_origin(bare), typing.get_args(bare)
    if origin is Sequence:
        return partial(_read_list, arguments[0])
    if origin in (dict, Mapping):
        return partial(_read_mapping, arguments[1])
    return partial(_read_scalar, hint)


def _read_list(item: Any, value: Sequence[Any]) -> tuple[Any, ...]:
    items = []
    for position, entry in enumerate(value):
        try:
            items.append(_read_value(entry, item))
        except DataError as error:
            error.place = f"[{position}]{error.place}"
            raise
    return tuple(items)


def _read_mapping(item: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    items = {}
    for key, entry in value.items():
        with _within(f".{key}"):
            items[key] = _read_value(entry, item)
    return items


def _read_scalar(hint: Any, value: Any) -> Any:
    bare, _ = without_marks(hint)
    if value is None and bare is float:
        return math.nan
    return tuple(value) if isinstance(value, list) else value


def _is_kind(value: Any, hint: Any) -> bool:
    """Whether the value can be read as the hint; what is inside of it is not looked at."""
    bare, marks = without_marks(hint)
    origin = typing.get_origin(bare)
    if dataclasses.is_dataclass(bare) or origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(mark.holds(value) for mark in marks)
    if origin is Sequence:
        return isinstance(value, list | tuple) and all(mark.holds(value) for mark in marks)
    if origin is Literal:
        return value in typing.get_args(bare)
    if bare is object:
        return True
    if bare is float and value is None:
        return any(isinstance(mark, MayBeInfinite) for mark in marks)
    if bare in (int, float):
        numbers = int if bare is int else (int, float)
        is_number = isinstance(value, numbers) and not isinstance(value, bool)
        return is_number and _has_room(value) and all(mark.holds(value) for mark in marks)
    return isinstance(value, bare) and all(mark.holds(value) for mark in marks)


def _has_room(value: Any) -> bool:
    """Whether figures can be computed from the number: an integer of JSON has no bound."""
    return isinstance(value, float) or abs(value) <= LARGEST_COUNT


def _mismatch(value: Any, hint: Any) -> DataError:
    words = dict.fromkeys(map(_expected, options_of(hint)))
    shown = (
        repr(value) if isinstance(value, _SCALARS) else _WORDS.get(type(value), "something else")
    )
    return DataError(f"is {shown[:80]}, not {' or '.join(words)}")


def _expected(hint: Any) -> str:
    bare, marks = without_marks(hint)
    if typing.get_origin(bare) is Literal:
        return " or ".join(f"`{word}`" for word in typing.get_args(bare))
    word = _WORDS.get(bare)
    if word is None:
        word = "a list" if typing.get_origin(bare) is Sequence else "an object"
    return " ".join([word, *filter(None, map(str, marks))])
