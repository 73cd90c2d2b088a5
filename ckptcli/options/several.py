"""Several values of one option in one text: `4,8`, `1..8,20`, `64..4096:x2`, `0.3,0.44`.

Parts stand between commas. A part is a number or, among whole numbers, a range from its first end
up, with a step (`8..64:+8`) or a factor (`64..4096:x2`) where it is not 1; a further kind of part
is a function of `_WHOLE` or `_ANY`. Words (`float32,float64`) have no ranges. Among values of any
kind a part in quotes, `"a,b"`, is a text, whatever is in it.

Invariant: no value comes twice, since each is a program of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

MOST_VALUES = 100
"""In one text."""

Value = TypeVar("Value")

# Patterns are texts: a command that is given no list compiles none of them.
_QUOTED = r'\s*"(?:[^"\\]|\\["\\])*"\s*'
_NUMBER = r"[+-]?[0-9]{1,18}"
_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_RANGE = r"([0-9]{1,9})\.\.([0-9]{1,9})"
_STEPS = r"([0-9]{1,9})\.\.([0-9]{1,9}):([+x])([0-9]{1,9})"


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


def words(text: str) -> list[str]:
    """The words in `float32` or `float32,float64`, in this order.

    Raises:
        ValueError: a part without a word, one that comes twice, or too many.
    """
    return _values(text, (_word,), "no word")


def anything(text: str) -> list[bool | int | float | str]:
    """The values in `2,4,8`, `0.5`, `true`, `gelu,relu` or `"a,b","4"`: numbers and ranges where
    they read as these, `true` and `false`, else texts.

    Raises:
        ValueError: a part without a text, one that comes twice, too many, or quotes without an end.
    """
    return _values(text, _ANYTHING, "no value", _parts(text))


def as_value(text: str) -> str:
    """The text as a part that reads as it again: in quotes where it must be."""
    try:
        is_plain = anything(text) == [text]
    except ValueError:
        is_plain = False
    return text if is_plain else '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def is_list(text: str) -> bool:
    """Whether the text is more than a number, right or wrong."""
    return "," in text or ".." in text


def _parts(text: str) -> list[str]:
    """What stands between commas, those within quotes left alone; quotes begin a part."""
    found, place = list[str](), 0
    while place <= len(text):
        quoted = re.compile(_QUOTED).match(text, place)
        end = text.find(",", place) if quoted is None else quoted.end()
        end = len(text) if end < 0 else end
        part = text[place:end]
        if part.strip().startswith('"') and (
            quoted is None or text[end : end + 1] not in ("", ",")
        ):
            raise ValueError(f"`{text[place:].strip()}` has quotes that do not end before a comma")
        found.append(part)
        place = end + 1
    return found


def _values(
    text: str,
    kinds: Sequence[Callable[[str], Sequence[Value] | None]],
    otherwise: str,
    parts: Sequence[str] | None = None,
) -> list[Value]:
    found: list[Value] = []
    for part in text.split(",") if parts is None else parts:
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
    return [int(part)] if re.fullmatch(_NUMBER, part) else None


def _range(part: str) -> Sequence[int] | None:
    match = re.fullmatch(_RANGE, part)
    return None if match is None else range(int(match[1]), int(match[2]) + 1) or None


def _steps(part: str) -> Sequence[int] | None:
    match = re.fullmatch(_STEPS, part)
    if match is None:
        return None
    first, last, step = int(match[1]), int(match[2]), int(match[4])
    if match[3] == "+":
        return (range(first, last + 1, step) or None) if step else None
    return _powers(first, last, step) or None


def _powers(first: int, last: int, factor: int) -> list[int]:
    """`first`, and `factor` times the one before, up to `last`; none if they would not grow."""
    found: list[int] = []
    if factor > 1 and first > 0:
        while first <= last:
            found.append(first)
            first *= factor
    return found


def _quoted(part: str) -> Sequence[str] | None:
    return [re.sub(r"\\(.)", r"\1", part[1:-1])] if re.fullmatch(_QUOTED, part) else None


def _word(part: str) -> Sequence[str] | None:
    return [part] if part else None


def _any(part: str) -> Sequence[float] | None:
    is_finite = re.fullmatch(_DECIMAL, part) is not None and math.isfinite(float(part))
    return [float(part)] if is_finite else None


def _truth(part: str) -> Sequence[bool] | None:
    return [part == "true"] if part in ("true", "false") else None


_WHOLE = (_whole, _range, _steps)
_ANY = (_any,)
_ANYTHING: Sequence[Callable[[str], Sequence[bool | int | float | str] | None]] = (
    _quoted,
    *_WHOLE,
    _any,
    _truth,
    _word,
)
