"""What a sort of Burn's took, in counts that are the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SortCost:
    """What the old sort took in one pass, or in one retrieval.

    Attributes:
        retrievals: how often a value was asked for.
        visits_today: nodes that today's sort visits, each once a retrieval; Burn's log has a line
            for each.
        visits: calls of the old sort.
        look_ups: ids of a returned list that it looked for in the list it was making.
        comparisons: of two ids, in these searches from the front.
    """

    retrievals: int = 0
    visits_today: int = 0
    visits: int = 0
    look_ups: int = 0
    comparisons: int = 0

    def __add__(self, other: SortCost) -> SortCost:
        return SortCost(
            self.retrievals + other.retrievals,
            self.visits_today + other.visits_today,
            self.visits + other.visits,
            self.look_ups + other.look_ups,
            self.comparisons + other.comparisons,
        )
