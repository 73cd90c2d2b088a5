"""The programs that options stand for where some have several values: a point for each.

A point has one value of each option. Several lists give their product, the first of the options
varying slowest.

Invariant: no two points of one command line are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ckptcli.errors import UsageError
from ckptcli.options.listing import changed, options_of, values_of
from ckptcli.options.option import Option
from ckptcli.options.several import MOST_VALUES, numbers, whole_numbers, words
from ckptcli.options.workload import WorkloadOptions

MOST_POINTS = MOST_VALUES
"""However many lists they come from: each is a program of its own."""

_READERS: Mapping[str, Callable[[str], Sequence[Any]]] = {
    "integers": whole_numbers,
    "numbers": numbers,
    "words": words,
}


@dataclass(frozen=True, slots=True)
class Point:
    """One program among several.

    Attributes:
        values: of each option that has several values the one here, by its name; empty where there
            is one program.
        options: all options, each of one value.
    """

    values: Mapping[str, float]
    options: WorkloadOptions


def points(options: WorkloadOptions, names: Collection[str]) -> list[Point]:
    """At least one; a list of an option that is not among `names` is left as it is.

    Raises:
        UsageError: a text that is no list, or too many points.
    """
    known = [option for option in options_of(WorkloadOptions) if option.name in names]
    lists = lists_of(known, values_of(options))
    varying = [name for name, values in lists.items() if len(values) > 1]
    return [
        Point({name: values[name] for name in varying}, changed(options, **values))
        for values in combined(lists)
    ]


def lists_of(options: Sequence[Option], values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each option that was given the text of several, by its name.

    Raises:
        UsageError: a text that is no list.
    """
    return {o.name: found for o in options if (found := _several(o, values[o.name]))}


def combined(
    lists: Mapping[str, Sequence[Any]], most: int = MOST_POINTS, zipped: bool = False
) -> list[dict[str, Any]]:
    """One value of each list, by name: every combination, the first list varying slowest; `zipped`
    the first values of all, then the second ones.

    Raises:
        UsageError: more than `most` of them, or lists of several lengths that are zipped.
    """
    lengths = {name: len(values) for name, values in lists.items() if len(values) > 1}
    if zipped and len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UsageError(
            f"--zip takes lists of one length, these have {shown} values",
            "give as many of each, or leave out --zip",
        )
    count = max(lengths.values(), default=1) if zipped else math.prod(map(len, lists.values()))
    if count > most:
        raise UsageError(
            f"the lists of {' and '.join(lists)} stand for {count} programs",
            f"give at most {most} in one command",
        )
    if not zipped:
        return [dict(zip(lists, values)) for values in product(*lists.values())]
    filled = [values if len(values) > 1 else [*values] * count for values in lists.values()]
    return [dict(zip(lists, values)) for values in zip(*filled)]


def _several(option: Option, value: Any) -> list[Any]:
    """The values in the text of an option that takes a list; empty for any other value."""
    reader = _READERS.get(option.kind)
    if reader is None or not isinstance(value, str):
        return []
    try:
        return list(reader(value))
    except ValueError as error:
        raise UsageError(f"{option.flag} is `{value}`: {error}", "see `ckpt run --help`") from None


def whole(value: int | str) -> int:
    """The value of a whole-number option of a point.

    Raises:
        UsageError: a list, which `points` takes apart.
    """
    if isinstance(value, str):
        raise UsageError(f"`{value}` is a list where one program has one number", "give one number")
    return value


def number(value: float | str) -> float:
    """The value of a number option of a point.

    Raises:
        UsageError: as `whole`.
    """
    if isinstance(value, str):
        raise UsageError(f"`{value}` is a list where one program has one number", "give one number")
    return value
