"""The entries of a problem file with their checks: each fault named by file, entry and value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from ckptcli.errors import ProblemFileError
from ckptcli.planning.problems.base import Number

LONGEST_SHOWN = 40

LARGEST = 10**100
"""Far beyond what is counted in, and far below what a ratio of two would overflow at."""

Value = TypeVar("Value")


class Fields:
    """One JSON object of a file, read entry by entry."""

    def __init__(self, place: str, values: Mapping[str, Any]) -> None:
        self.place = place
        self._values = values
        self._read = {"kind"}

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def unread(self) -> list[str]:
        """The entries that nobody asked for."""
        return [key for key in self._values if key not in self._read]

    def fail(self, what: str, hint: str | None = None) -> NoReturn:
        """Refuse the file."""
        raise ProblemFileError(f"{self.place}: {what}", hint)

    def value(self, key: str) -> Any:
        """What the file has under `key`, which it must have."""
        self._read.add(key)
        if key not in self._values:
            self.fail(f"`{key}` is missing")
        return self._values[key]

    def whole(self, key: str) -> int:
        """A whole number of at least 0."""
        return size_of(self, f"`{key}`", self.value(key))

    def list(self, key: str) -> Sequence[Any]:
        """A list."""
        value = self.value(key)
        if not isinstance(value, list):
            self.fail(f"`{key}` must be a list, got {shown(value)}")
        return value

    def costs(self, key: str) -> tuple[Number, ...]:
        """A list of costs."""
        return self._each(key, cost_of)

    def sizes(self, key: str) -> tuple[int, ...]:
        """A list of sizes."""
        return self._each(key, size_of)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of names; none where the file has no such entry."""
        if key not in self._values:
            return ()
        return self._each(key, name_of)

    def _each(self, key: str, check: Callable[[Fields, str, Any], Value]) -> tuple[Value, ...]:
        values = self.list(key)
        return tuple(check(self, f"entry {i} of `{key}`", value) for i, value in enumerate(values))


def cost_of(fields: Fields, what: str, value: Any) -> Number:
    """A finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        fields.fail(f"{what} must be a number, got {shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        fields.fail(f"{what} must be a finite number, got {shown(value)}")
    if value < 0:
        fields.fail(f"{what} must not be negative, got {shown(value)}")
    if value > LARGEST:
        fields.fail(f"{what} must not be above 1e100, got {shown(value)}")
    return value


def size_of(fields: Fields, what: str, value: Any) -> int:
    """A whole number of at least 0, of any size; `4.0` is one."""
    number = cost_of(fields, what, value)
    if int(number) != number:
        fields.fail(f"{what} must be a whole number, got {shown(value)}")
    return int(number)


def name_of(fields: Fields, what: str, value: Any) -> str:
    """A name."""
    if not isinstance(value, str) or not value:
        fields.fail(f"{what} must be a name, got {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A value as a message has it: on one line, and short."""
    text = ascii(value) if not isinstance(value, int) or value.bit_length() < 4096 else "a number"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."
