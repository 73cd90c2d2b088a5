"""Which of several things no other one beats in two figures, such as peak and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")


def unbeaten(
    items: Iterable[Item], rank: Callable[[Item], Any], height: Callable[[Item], Any]
) -> list[Item]:
    """By ascending rank, each that is lower than all before it."""
    kept: list[Item] = []
    for item in sorted(items, key=rank):
        if not kept or height(item) < height(kept[-1]):
            kept.append(item)
    return kept
