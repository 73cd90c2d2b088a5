"""Which cases `scripts/test --fast` runs, counted while they are collected."""

from __future__ import annotations

from collections import Counter

import pytest

FAST_CASES = pytest.StashKey[Counter[str]]()
"""Of each file that was collected, how many of its cases are fast."""


def mark_and_count(items: list[pytest.Item], fast: Counter[str]) -> None:
    """Of a family under `sampled(every)`, each `every`-th case is fast; the others are slow. Under
    `thinned(every)` the others are long, and what is long is slow.
    """
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None:
            family = item.nodeid.partition("[")[0]
            if seen[family] % mark.args[0]:
                item.add_marker("slow")
            seen[family] += 1
        thinned = item.get_closest_marker("thinned")
        if thinned is not None:
            family = f"thinned {item.nodeid.partition('[')[0]}"
            if seen[family] % thinned.args[0]:
                item.add_marker("long")
            seen[family] += 1
        if item.get_closest_marker("long") is not None:
            item.add_marker("slow")
        fast[item.path.name] += item.get_closest_marker("slow") is None
