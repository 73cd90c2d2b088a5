"""What Burn's sort took before its fix, as a line and as data."""

from __future__ import annotations

import math

from ckptcli.measure.sort_cost import SortCost
from ckptcli.units import count, plural

MOST_WRITTEN = 10**15
"""A count above this is told by its power of ten."""

MOST_IN_JSON = 2**63 - 1


def sort_line(cost: SortCost | None) -> str:
    """The line without what begins lines of ours."""
    if cost is None:
        return "sort before-5679: this pass has regions, which are planned; no sort is asked"
    return (
        f"sort before-5679: {_counted(cost.visits, 'visit')} for "
        f"{_counted(cost.retrievals, 'retrieval')} (today {cost.visits_today:,}), "
        f"{_counted(cost.look_ups, 'look-up')} in lists by "
        f"{_counted(cost.comparisons, 'comparison')} (today in a set); the same log"
    )


def sort_object(cost: SortCost | None) -> dict[str, object]:
    """The counts as a JSON object; a count that 64 bits do not hold is null, and in `words`."""
    counts = {
        name: value if value <= MOST_IN_JSON else None
        for name in SortCost.__slots__
        if cost is not None
        for value in [getattr(cost, name)]
    }
    return {"rule": "before-5679", **counts, "words": sort_line(cost)}


def _counted(number: int, noun: str) -> str:
    """`1 visit`, `65,566 visits`, `about 10^3010 visits`."""
    if number > MOST_WRITTEN:
        power = round((number.bit_length() - 1) * math.log10(2.0))
        return f"about 10^{power} {plural(noun)}"
    return count(number, noun, f"{number:,}")
