"""Several values of one option in one text: `4,8`, `1..8,20`, `0.3,0.44`.

Parts stand between commas. A part is a number or, among whole numbers, a range with both its ends;
a further kind of part is a function of `_WHOLE` or `_ANY`.

Invariant: no value comes twice, since each is a program of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

MOST_VALUES = 100
"""In one text."""

Value = TypeVar("Value", int, float)

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_RANGE = re.compile(r"([0-9]{1,9})\.\.([0-9]{1,9})")


def whole_numbers(text: str) -> list[int]:
    """The numbers in `20`, `4,8` or `1..8,20`, in this order.

    Raises:
        ValueError: a part that is neither a number nor a range that goes up, a number that comes
            twice, or too many; the text is a sentence.
    """
    return _values(text, _WHOLE, "no whole number and no range that goes up, such as 1..8")


def numbers(text: str) -> list[float]:
    """The numbers in `0.3` or `0.3,0.44`, in this order.

    Raises:
        ValueError: as `whole_numbers`.
    """
    return _values(text, _ANY, "no number")


def is_list(text: str) -> bool:
    """Whether the text is more than a number, right or wrong."""
    return "," in text or ".." in text


def _values(
    text: str, kinds: Sequence[Callable[[str], Sequence[Value] | None]], otherwise: str
) -> list[Value]:
    found: list[Value] = []
    for part in text.split(","):
        known = (values for kind in kinds if (values := kind(part.strip())) is not None)
        values = next(known, None)
        if values is None:
            raise ValueError(f"`{part.strip()}` is {otherwise}")
        if len(found) + len(values) > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES} values")
        found += values
    for value in found:
        if found.count(value) > 1:
            raise ValueError(f"it has {value} twice")
    return found


def _whole(part: str) -> Sequence[int] | None:
    return [int(part)] if _NUMBER.fullmatch(part) else None


def _range(part: str) -> Sequence[int] | None:
    match = _RANGE.fullmatch(part)
    return None if match is None else range(int(match[1]), int(match[2]) + 1) or None


def _any(part: str) -> Sequence[float] | None:
    is_finite = _DECIMAL.fullmatch(part) is not None and math.isfinite(float(part))
    return [float(part)] if is_finite else None


_WHOLE = (_whole, _range)
_ANY = (_any,)
