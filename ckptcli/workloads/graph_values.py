"""The values in a graph file: what is a number, a list of sizes, a mask; and how errors show one.

Invariant: whatever JSON holds, a function here gives a value of its kind or raises `Misfit`; none
recurses.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

MOST_SHOWN = 40
"""Characters of a value that a message shows."""


class Misfit(Exception):
    """A value of another kind; the text says what it should be, or which element is wrong."""


def shown(value: Any) -> str:
    """`value` as it stands in the file, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return "a value too large to show"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def is_index(value: Any) -> bool:
    """Whether it is an integer from 0."""
    return is_integer(value) and value >= 0


def is_integer(value: Any) -> bool:
    """Whether it is an integer that an array library can take; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def is_number(value: Any) -> bool:
    """Whether it is a number, not finite ones included, that float64 can hold."""
    if type(value) is not int:
        return type(value) is float
    try:
        float(value)
    except OverflowError:
        return False
    return True


def number_array(value: Any) -> Any:
    """A list of numbers, flat or nested, as a float64 array.

    Raises:
        Misfit: something else, or lists of different lengths.
    """
    shape, elements = _nested(value)
    if not elements:
        raise Misfit(f"must be a list of numbers, got {shown(value)}")
    try:
        if set(map(type, elements)) <= {int, float}:
            return _shaped(np.array(elements, dtype=np.float64), shape)
    except OverflowError:  # one of them, found below
        pass
    raise _wrong_element(elements, is_number, "a number that float64 can hold")


def mask_array(value: Any) -> Any:
    """A list of truth values, flat or nested, as a boolean array.

    Raises:
        Misfit: something else, or lists of different lengths.
    """
    shape, elements = _nested(value)
    if not elements:
        raise Misfit(f"must be a list of true and false, got {shown(value)}")
    if not all(map(_is_truth, elements)):
        raise _wrong_element(elements, _is_truth, "true or false")
    return _shaped(np.array(elements), shape)


def index_array(value: Any) -> Any:
    """A list of integers, flat or nested, as an integer array.

    Raises:
        Misfit: something else, or lists of different lengths.
    """
    shape, elements = _nested(value)
    if not elements:
        raise Misfit(f"must be a list of integers, got {shown(value)}")
    if not all(map(is_integer, elements)):
        raise _wrong_element(elements, is_integer, "an integer")
    return _shaped(np.array(elements, dtype=np.int64), shape)


def argument(kind: str, value: Any) -> Any:
    """The argument of an op, checked; `kind` is the annotation in its function, or `mask`.

    Raises:
        Misfit: a value of another kind.
    """
    if kind in _ARRAYS:
        return _ARRAYS[kind](value)
    fits, words = _KINDS[kind]
    if not fits(value):
        raise Misfit(f"must be {words}, got {shown(value)}")
    return value


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _are_integers(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_integer, value))


def _are_ranges(value: Any) -> bool:
    return isinstance(value, list) and all(
        _are_integers(bounds) and len(bounds) in (2, 3) for bounds in value
    )


_ARRAYS: dict[str, Callable[[Any], Any]] = {"mask": mask_array, "Any": index_array}

_NUMBER = "a number that float64 can hold"
_RANGES = "a list of [start, stop] or [start, stop, step]"
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (_is_truth, "true or false"),
    "float": (is_number, _NUMBER),
    "float | None": (lambda value: value is None or is_number(value), f"null or {_NUMBER}"),
    "int": (is_integer, "an integer"),
    "int | None": (lambda value: value is None or is_integer(value), "null or an integer"),
    "str": (lambda value: isinstance(value, str), "a word"),
    "Sequence[int]": (_are_integers, "a list of integers"),
    "Sequence[Any]": (_are_ranges, _RANGES),
    "Sequence[Sequence[int]]": (_are_ranges, _RANGES),
    "Sizes": (
        lambda value: is_integer(value) or _are_integers(value),
        "an integer or a list of integers",
    ),
}
"""Annotation of a parameter -> what its value has to be."""


def _nested(value: Any) -> tuple[list[int], list[Any]]:
    """Shape and elements of a list, level by level; no elements if it is no list."""
    shape: list[int] = []
    level = [value]
    while level and isinstance(level[0], list):
        lengths = {len(item) if isinstance(item, list) else None for item in level}
        length = lengths.pop()
        if lengths or length is None:
            raise Misfit("has lists of different lengths, or elements beside lists")
        shape.append(length)
        level = [element for item in level for element in item]
    return shape, level if shape else []


def _shaped(array: Any, shape: list[int]) -> Any:
    try:
        return array.reshape(shape)
    except ValueError as error:  # more dims than an array can have
        raise Misfit(f"is nested {len(shape)} levels deep: {error}") from None


def _wrong_element(elements: list[Any], fits: Callable[[Any], bool], words: str) -> Misfit:
    position = next(i for i, element in enumerate(elements) if not fits(element))
    return Misfit(f"has element {position} {shown(elements[position])}, which is not {words}")
