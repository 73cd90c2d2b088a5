"""What is worth keeping in a dag, as ranks of values: the least rank is let go first.

A *cut* is a place in the forward part of an order that few values cross; of those alone what comes
later can be made again. Ranks by cuts make segments: every so many cuts, or, by how often two
divides the number of a cut, segments of segments, of which as many levels are held as fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from math import log

from ckptcli.planning.dag_view import DagView
from ckptcli.planning.problems.base import Number

Ranks = Mapping[int, int]
"""Of values that are no equals; any other has 0."""

DEAR_SHARES = (0.5, 0.1, 0.01)
"""A value is dear that costs so much of the dearest for its size."""


def hints(view: DagView, order: Sequence[int], budget: int) -> Iterator[Ranks]:
    """Rankings to try, those first that do well most often, and never badly."""
    dear = [_dear(view, share) for share in DEAR_SHARES]
    known: list[Ranks] = []
    cuts = _cuts(view, order)
    nested = {v: 2 + _twos(number) for number, cut in enumerate(cuts, 1) for v in cut}
    several = chain(
        ({**dear[0], **nested}, dear[0]),
        ({**dear[0], **_every(cuts, step)} for step in _steps(view, cuts, budget)),
        ({}, *dear[1:]),
    )
    for ranks in several:
        if ranks not in known:
            known.append(ranks)
            yield ranks


def _dear(view: DagView, share: float) -> dict[int, int]:
    """Rank 1 for values that cost much for their size."""
    free = [v for v in view.needed if not view.is_once[v]]
    dearest = max((_density(view, v) for v in free), default=0.0)
    return {v: 1 for v in free if _density(view, v) >= share * dearest}


def _density(view: DagView, v: int) -> float:
    return view.cost[v] / (view.size[v] or 1)


def _every(cuts: Sequence[Sequence[int]], step: int) -> dict[int, int]:
    """Rank 2 for what crosses every so many cuts."""
    return {v: 2 for cut in cuts[step - 1 :: step] for v in cut}


def _steps(view: DagView, cuts: Sequence[Sequence[int]], budget: int) -> list[int]:
    """2, 3, 4, 6, 8, 12 ... up to half of the cuts; that first at which a budget is just filled."""
    found = [step for k in range(1, len(cuts).bit_length()) for step in (2**k, 3 * 2 ** (k - 1))]
    whole = sum(view.size[v] for cut in cuts for v in cut)
    filling = max(1.0, whole / max(1, budget))
    within = [step for step in found if step <= len(cuts) // 2]
    return sorted(within, key=lambda step: abs(log(step / filling)))


def _twos(number: int) -> int:
    return (number & -number).bit_length() - 1


def _cuts(view: DagView, order: Sequence[int]) -> list[list[int]]:
    """The values that cross each place of the forward part where few do, and dear ones."""
    forward = [v for v in order if not view.is_once[v]]
    place = {v: i for i, v in enumerate(forward)}
    last = {v: max((place[c] for c in view.children[v] if c in place), default=-1) for v in forward}
    crossing = _crossing(view, forward, last)
    places = [
        i
        for i in range(len(forward) - 1)
        if 0 < crossing[i] <= min(crossing[max(0, i - 1) : i + 2])
    ]
    cuts: list[list[int]] = []
    live: set[int] = set()
    wanted = set(places)
    for i, v in enumerate(forward):
        if last[v] > i:
            live.add(v)
        live.difference_update(p for p in view.parents[v] if last.get(p) == i)
        if i in wanted:
            cuts.append(sorted(live))
    return _dearer_half(view, cuts)


def _crossing(view: DagView, forward: Sequence[int], last: Mapping[int, int]) -> list[int]:
    """The size of what is made up to each place and used by a forward node after it."""
    change = [0] * (len(forward) + 1)
    for i, v in enumerate(forward):
        if last[v] > i:
            change[i] += view.size[v]
            change[last[v]] -= view.size[v]
    return list(accumulate(change))


def _dearer_half(view: DagView, cuts: Sequence[list[int]]) -> list[list[int]]:
    """The cuts whose values cost at least the mean for their size."""
    worth: list[Number] = [
        sum(view.cost[v] for v in cut) / (sum(view.size[v] for v in cut) or 1) for cut in cuts
    ]
    mean = sum(worth) / len(worth) if worth else 0
    return [cut for cut, each in zip(cuts, worth) if each >= mean * 0.999]
