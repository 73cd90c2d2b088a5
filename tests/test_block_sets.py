"""Searching sets of blocks: against brute force, within its number of passes."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from ckptcli.planning.blocks import sets
from ckptcli.planning.blocks.search import MORE_PASSES, Found, Search
from ckptcli.planning.blocks.sets import BlockSet, NoSuchSet, SetPass, Stage


class Network:
    """Blocks one after the other, a head behind them; what is live is counted step by step.

    A block holds `held` and under a checkpoint `kept`, makes `inside` while it runs, and leaves
    `gradient` behind its backward. Checkpoints keep `shared` once, an argument of all blocks.
    """

    def __init__(self, seed: int, blocks: int, top: int = 40, shared: int = 0) -> None:
        draw = random.Random(seed)
        self.held = [draw.randint(4, top) for _ in range(blocks)]
        self.kept = [draw.randint(1, 4) for _ in range(blocks)]
        self.inside = [draw.randint(0, 9) for _ in range(blocks)]
        self.gradient = [draw.randint(0, 6) for _ in range(blocks)]
        self.costs = [draw.randint(1, 9) for _ in range(blocks)]
        self.head = draw.randint(0, 60)
        self.shared = shared
        self.passes = 0

    def measured(self, chosen: BlockSet) -> SetPass:
        self.passes += 1
        live, stages, places = 0, [], range(len(self.held))
        first = min(chosen, default=-1)
        for b in places:
            live += self.shared if b == first else 0
            done = frozenset(range(b))
            stages.append(Stage("forward", b, live + self.held[b] + self.inside[b], done))
            live += self.kept[b] if b in chosen else self.held[b]
        held_bytes = live
        stages.append(Stage("backward", None, live + self.head, frozenset(places)))
        for b in reversed(places):
            live -= self.kept[b] if b in chosen else self.held[b]
            kept = self.kept[b] if b in chosen else 0
            peak = live + self.held[b] + kept + self.inside[b]
            stages.append(Stage("backward", b, peak, frozenset(range(b))))
            live += self.gradient[b] - (self.shared if b == first else 0)
        peak = max(stage.peak_bytes for stage in stages)
        return SetPass(chosen, peak, held_bytes, stages)

    def searched(self, budget: int | None) -> tuple[Found, Search]:
        search = Search(self.measured, self.costs, lambda done, most: None)
        return search.run(budget), search

    def cheapest(self, budget: int) -> int | None:
        """By trying every set."""
        places = range(len(self.held))
        every = [
            frozenset(s) for size in range(len(places) + 1) for s in combinations(places, size)
        ]
        costs = [sum(self.costs[b] for b in s) for s in every if self.peak(s) <= budget]
        return min(costs, default=None)

    def peak(self, chosen: BlockSet) -> int:
        return self.measured(chosen).peak_bytes


@pytest.mark.parametrize("seed", range(12))
def test_the_set_is_the_cheapest_of_all(seed: int) -> None:
    network = Network(seed, 2 + seed % 6)
    most = network.peak(frozenset())
    for budget in {most, most * 4 // 5, most * 3 // 5, most // 2, most // 4}:
        found, search = network.searched(budget)
        expected = network.cheapest(budget)
        assert (None if found.best is None else search.cost(found.best.chosen)) == expected
        exact = [found.passes[s].peak_bytes == peak for s, peak in found.predicted_bytes.items()]
        assert all(exact)


@pytest.mark.parametrize("seed", range(6))
def test_what_checkpoints_keep_once_is_known_of_all_together(seed: int) -> None:
    network = Network(seed, 6, shared=3)
    most = network.peak(frozenset())
    for budget in (most * 4 // 5, most * 3 // 5, most // 2):
        found, search = network.searched(budget)
        expected = network.cheapest(budget)
        assert (None if found.best is None else search.cost(found.best.chosen)) == expected


@pytest.mark.parametrize("blocks", [1, 4, 30])
def test_passes_are_bounded_and_no_set_is_measured_twice(blocks: int) -> None:
    network = Network(blocks, blocks)
    network.passes = 0
    found, search = network.searched(network.peak(frozenset()) * 2 // 3)
    assert network.passes - 1 <= search.most_passes == 2 * blocks + MORE_PASSES
    assert len(found.passes) == network.passes - 1


@pytest.mark.parametrize("seed", range(4))
def test_of_many_blocks_a_set_fits_and_none_of_it_can_be_left_out(seed: int) -> None:
    network = Network(seed, 24)
    none, lowest = network.peak(frozenset()), network.peak(frozenset(range(24)))
    for part in (0.2, 0.5, 0.8):
        budget = int(lowest + part * (none - lowest))
        found, _ = network.searched(budget)
        assert found.best is not None
        assert found.best.peak_bytes <= budget
        for block in found.best.chosen:
            assert network.peak(found.best.chosen - {block}) > budget


@pytest.mark.parametrize("seed", range(6))
def test_a_smaller_budget_never_peaks_higher(seed: int) -> None:
    network = Network(seed, 6, top=12)
    network.costs = [1 + seed % 2] * 6  # ties everywhere
    peaks = []
    for budget in range(network.peak(frozenset()), 0, -3):
        best = network.searched(budget)[0].best
        if best is not None:
            peaks.append(best.peak_bytes)
    assert peaks == sorted(peaks, reverse=True)


def test_thinning_comes_near_the_cheapest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of more blocks than every set is looked at of, on networks of nine."""
    monkeypatch.setattr(sets, "ALL_SETS_OF", 2)
    shares = []
    for seed in range(20):
        network = Network(seed, 9)
        none, most = network.peak(frozenset()), network.peak(frozenset(range(9)))
        for part in (0.3, 0.6):
            budget = int(most + part * (none - most))
            found, search = network.searched(budget)
            least = network.cheapest(budget)
            assert found.best is not None
            assert least is not None
            shares.append(search.cost(found.best.chosen) / max(1, least))
    assert max(shares) < 1.2
    assert sum(share == 1.0 for share in shares) >= 0.9 * len(shares)


def test_a_frontier_falls_from_none_to_the_lowest() -> None:
    network = Network(3, 6)
    found, search = network.searched(None)
    points = search.frontier(found)
    assert points[0] is found.none
    assert points[-1].peak_bytes == found.lowest.peak_bytes
    peaks = [point.peak_bytes for point in points]
    assert peaks == sorted(set(peaks), reverse=True)


def test_a_pass_that_is_higher_than_it_should_be_has_the_next_one_sought_lower() -> None:
    network = Network(5, 6)

    def measured(chosen: BlockSet) -> SetPass:
        made = network.measured(chosen)
        if 1 < len(chosen) < 6:  # what two checkpoints together take, no pass of one shows
            made = SetPass(chosen, made.peak_bytes + 7, made.held_bytes, made.stages)
        return made

    budget = network.peak(frozenset()) * 7 // 10
    found = Search(measured, network.costs, lambda done, most: None).run(budget)
    assert found.best is not None
    assert measured(found.best.chosen).peak_bytes <= budget


def test_a_block_that_cannot_be_is_left_out_with_its_reason() -> None:
    network = Network(1, 4)

    def measured(chosen: BlockSet) -> SetPass:
        if 2 in chosen:
            raise NoSuchSet("it writes over its input")
        return network.measured(chosen)

    found = Search(measured, network.costs, lambda done, most: None).run(None)
    assert found.refused == {2: "it writes over its input"}
    assert frozenset({0, 1, 3}) in found.passes
