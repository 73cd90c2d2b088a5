"""Whether a record that was read from a file holds what its classes say.

JSON has no types to hold a file to; a record edited by hand could carry a text where reports
calculate. The annotations of the record's classes are the only description that is used.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal

_NAMES: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    type(None): "null",
}


def first_mismatch(value: Any, path: str = "") -> str | None:
    """A sentence on the first field of a dataclass, or below, that is of another type."""
    hints = _hints(type(value))  # type: ignore[arg-type]  # a class is hashable
    return next(
        (
            complaint
            for name, hint in hints.items()
            for complaint in _complaints(getattr(value, name), hint, f"{path}.{name}".lstrip("."))
        ),
        None,
    )


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _complaints(value: object, hint: Any, path: str) -> Iterator[str]:
    origin = typing.get_origin(hint)
    if is_dataclass(hint) and isinstance(hint, type) and isinstance(value, hint):
        complaint = first_mismatch(value, path)
        if complaint is not None:
            yield complaint
    elif origin is Sequence and isinstance(value, tuple):
        (item_hint,) = typing.get_args(hint)
        for position, item in enumerate(value):
            yield from _complaints(item, item_hint, f"{path}[{position}]")
    elif origin is dict and isinstance(value, Mapping):
        _, item_hint = typing.get_args(hint)
        for key, item in value.items():
            yield from _complaints(item, item_hint, f"{path}.{key}")
    elif origin in (types.UnionType, typing.Union):
        if all(any(_complaints(value, option, path)) for option in typing.get_args(hint)):
            yield f"{path} is `{value}`, {_expected(typing.get_args(hint))}"
    elif not _is_plain(value, hint):
        yield f"{path} is `{value}`, {_expected((hint,))}"


def _is_plain(value: object, hint: Any) -> bool:
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    # Python 3.10 takes `list[int]` for a type
    is_class = isinstance(hint, type) and typing.get_origin(hint) is None
    return is_class and isinstance(value, hint)


def _expected(hints: Sequence[Any]) -> str:
    names = [_NAMES.get(hint, "a list or an object") for hint in hints]
    return f"not {' or '.join(dict.fromkeys(names))}"
