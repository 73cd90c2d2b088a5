"""Some of a network's layers by index, `0,2,5` or `3..7`; layers count from 0, as in every message.

Invariant: a choice is kept as ranges, so that a large index costs no more than a small one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ckptcli.errors import UsageError

_RANGE = re.compile(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """Layers of any network.

    Attributes:
        ranges: first and last layer of each range, in order; no two touch.
    """

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, key: str, text: str) -> LayerChoice:
        """The layers in `0,2,5` or `3..7,9`, in any order.

        Raises:
            UsageError: another text, or a range that goes down; `key` is what it was given for.
        """
        return cls(_joined(sorted(_range(key, text, part) for part in text.split(","))))

    def runs(self, count: int) -> Iterator[tuple[int, int]]:
        """First layer and number of layers of each range, as far as `count` layers go."""
        for first, last in self.ranges:
            if first < count:
                yield first, min(last, count - 1) - first + 1

    def beyond(self, count: int) -> int | None:
        """The first layer chosen that `count` layers do not have; None if they have all."""
        for first, last in self.ranges:
            if last >= count:
                return max(first, count)
        return None


def _range(key: str, text: str, part: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(part.strip())
    first, last = (1, 0) if match is None else (int(match[1]), int(match[2] or match[1]))
    if first > last:
        raise UsageError(
            f"`{key}={text}` names layers by index, and `{part.strip()}` is no index and no range",
            f"write `{key}=0,2,5` or `{key}=3..7`; layers count from 0",
        )
    return first, last


def _joined(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted ranges, those that overlap or touch made one."""
    found: list[tuple[int, int]] = []
    for first, last in ranges:
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)
