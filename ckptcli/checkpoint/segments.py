"""Layers cut into a given number of segments so that held and recomputed bytes are least together.

The peak of a segmented backward pass is about what is held between segments plus what the largest
segment computes again. By count that is least where all layers are alike; where they differ, a
segment gets a budget of bytes instead of a number of layers, and the budget is searched: for each
one the cuts are chosen that hold least, and the best of all is taken.

Invariant: the segments are those by count unless others are smaller in bytes. A budget takes n k
steps for k segments of n layers; of thousands of layers that differ fewer budgets are tried.

Source: T. Chen et al., "Training deep nets with sublinear memory cost" (2016), section 4.3 and
algorithm 3: a budget for each segment, found by a search, where layers are not uniform. There the
number of segments follows from the budget; here it stays the square root of the number of layers,
so that nearly equal layers are grouped like equal ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ckptcli.checkpoint.layer_bytes import Grouping, LayerBytes, LayerValue, grouped

MOST_BUDGETS = 64
"""The best is found to within this part of the range of budgets."""

FEWEST_BUDGETS = 4
MOST_STEPS = 1_000_000
"""Of the whole search, about half a second."""


def even_sizes(count: int, parts: int) -> list[int]:
    """`count` layers in `parts` groups whose sizes differ by at most one, longer first."""
    size, longer = divmod(count, parts)
    return [size + 1] * longer + [size] * (parts - longer)


def least_peak(layers: LayerBytes, parts: int) -> Grouping:
    """The layers in `parts` segments, the smallest peak that the search finds."""
    best = grouped(layers, even_sizes(layers.count, parts))
    search = _Search(layers, parts)
    lowest_bytes = search.smallest_budget(best.largest_bytes)
    budget_bytes = best.peak_bytes - search.least_held_bytes - 1
    budgets = max(FEWEST_BUDGETS, min(MOST_BUDGETS, MOST_STEPS // (layers.count * parts)))
    step_bytes = max(1, (budget_bytes - lowest_bytes) // budgets)
    while budget_bytes >= lowest_bytes:
        other = grouped(layers, search.sizes(budget_bytes))
        if other.peak_bytes < best.peak_bytes:
            best = other
        budget_bytes = min(other.largest_bytes - 1, budget_bytes - step_bytes)
    return best


class _Search:
    """What every budget asks of the layers.

    Attributes:
        least_held_bytes: no cuts hold less.
    """

    def __init__(self, layers: LayerBytes, parts: int) -> None:
        self._count, self._parts = layers.count, parts
        self._cut_bytes = _cut_bytes(layers, parts)
        self._by_made: list[list[LayerValue]] = [[] for _ in range(layers.count)]
        self._by_step: list[list[LayerValue]] = [[] for _ in range(layers.count)]
        for value in layers.values:
            if value.first_step is not None:
                self._by_made[value.made].append(value)
                self._by_step[value.first_step].append(value)
        self.least_held_bytes = sum(sorted(self._cut_bytes[1:])[: parts - 1])

    def smallest_budget(self, enough_bytes: int) -> int:
        """The smallest budget within which there are not too many segments."""
        low, high = 0, enough_bytes
        while low < high:
            middle = (low + high) // 2
            if self._fewest(middle) <= self._parts:
                high = middle
            else:
                low = middle + 1
        return low

    def sizes(self, budget_bytes: int) -> list[int]:
        """The sizes of the segments within the budget whose cuts hold least."""
        starts = self._earliest_starts(budget_bytes)
        costs: list[float] = [0.0] + [float("inf")] * self._count
        chosen = []
        for _ in range(self._parts):
            costs, starts_chosen = self._one_segment_more(costs, starts)
            chosen.append(starts_chosen)
        sizes, end = [], self._count
        for starts_chosen in reversed(chosen):
            sizes.append(end - starts_chosen[end])
            end = starts_chosen[end]
        return sizes[::-1]

    def _one_segment_more(
        self, costs: Sequence[float], starts: Sequence[int]
    ) -> tuple[list[float], list[int]]:
        """The bytes held by cuts before each end, and the start of the segment that ends there.

        Of the starts that the budget allows, which move to the right with the end, the queue keeps
        those that can still be the cheapest.
        """
        more, chosen = [float("inf")], [0]
        queue: deque[tuple[float, int]] = deque()
        for end in range(1, self._count + 1):
            cost = costs[end - 1] + self._cut_bytes[end - 1]
            while queue and queue[-1][0] >= cost:
                queue.pop()
            queue.append((cost, end - 1))
            while queue[0][1] < starts[end]:
                queue.popleft()
            more.append(queue[0][0])
            chosen.append(queue[0][1])
        return more, chosen

    def _fewest(self, budget_bytes: int) -> int:
        """How many segments the budget takes; too many to count where one layer is beyond it."""
        starts = self._earliest_starts(budget_bytes)
        number, end = 0, self._count
        while end > 0:
            if starts[end] == end:
                return self._count + 1
            number, end = number + 1, starts[end]
        return number

    def _earliest_starts(self, budget_bytes: int) -> list[int]:
        """For each end the earliest start of a segment within the budget; the end itself if none.

        The segment slides over the layers: a value is inside from its first step's layer on, until
        the layer that makes it is left behind.
        """
        starts, start, inside_bytes = [0], 0, 0
        for end in range(1, self._count + 1):
            for value in self._by_step[end - 1]:
                if value.made >= start:
                    inside_bytes += value.value_bytes
            while inside_bytes > budget_bytes:
                for value in self._by_made[start]:
                    if value.first_step is not None and value.first_step < end:
                        inside_bytes -= value.value_bytes
                start += 1
            starts.append(start)
        return starts


def _cut_bytes(layers: LayerBytes, parts: int) -> list[int]:
    """What a cut before each layer makes held.

    A value that spans several segments is held once: its bytes are shared out among as many cuts
    as even segments would have there.
    """
    changes = [0] * (layers.count + 1)
    for value in layers.values:
        span = value.last_need - value.made
        share = value.value_bytes * layers.count // max(layers.count, span * parts)
        changes[value.made + 1] += share
        changes[value.last_need + 1] -= share
    cut_bytes, held = [0], 0
    for change in changes[1 : layers.count]:
        held += change
        cut_bytes.append(held)
    return cut_bytes
