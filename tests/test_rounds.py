"""Rounds under a fake clock: order, warm-up, repeats, stop rules.

No test waits for a real clock; time passes only where a subject says so.
"""

from __future__ import annotations

import itertools
import math
import random
import weakref
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ckptcli.measure.rounds import (
    LOOKS,
    SHORTEST_SAMPLE_S,
    WIDEST_HALF_WIDTH,
    Plan,
    run_rounds,
)
from ckptcli.measure.statistics import median_interval
from tests.fake_clock import FakeClock, FakeSubject, NoisyMachine, rounds_of, timed, totals

RANKS = {9: 2, 17: 5, 25: 8, 49: 18}
"""Which smallest and largest sample bound the median at 95 % (`test_statistics` derives them)."""

pytestmark = pytest.mark.usefixtures("nothing_set_aside")


@pytest.mark.parametrize("warmup", [0, 1, 2, 3])
@pytest.mark.parametrize("names", ["a", "ab", "abc", "abcde"])
def test_the_order_is_reversed_every_other_round(names: str, warmup: int) -> None:
    log: list[str] = []
    timed(dict.fromkeys(names, 0.1), Plan(reps=5, warmup=warmup, seed=3), log=log)
    seen = rounds_of(log, len(names))
    assert len(seen) == warmup + 5
    counted = seen[warmup:]
    assert sorted(counted[0]) == list(names)
    assert counted[0] == counted[2] == counted[4]
    assert counted[1] == counted[3] == counted[0][::-1]
    for before, after in itertools.pairwise(seen):
        assert after == before[::-1]


def test_the_seed_decides_who_is_first() -> None:
    def first_round(seed: int) -> str:
        log: list[str] = []
        timed(dict.fromkeys("abc", 0.1), Plan(reps=1, warmup=0, seed=seed), log=log)
        return "".join(rounds_of(log, 3)[0])

    orders = Counter(first_round(seed) for seed in range(600))
    assert len(orders) == 6
    assert min(orders.values()) > 60
    assert [first_round(seed) for seed in range(20)] == [first_round(seed) for seed in range(20)]


def test_a_sample_is_forward_then_backward_then_check() -> None:
    log: list[str] = []
    timed({"a": 0.1}, Plan(reps=2, warmup=0), log=log)
    assert log == ["a forward", "a backward", "a check"] * 2


def test_phases_are_timed_apart_and_checks_not_at_all() -> None:
    rounds = timed({"a": 0.5, "b": 1.0}, Plan(reps=2), check_s=64.0)
    for name, pass_s in (("a", 0.5), ("b", 1.0)):
        for sample in rounds.counted(name):
            assert (sample.forward_s, sample.backward_s) == (pass_s * 0.25, pass_s * 0.75)
    assert [sample.check for sample in rounds.samples["a"]] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("warmup", [0, 1, 2, 5])
def test_warmup_is_kept_apart(warmup: int) -> None:
    script = [8.0] * warmup + [1.0] * 4
    rounds = timed({"a": script, "b": script}, Plan(reps=4, warmup=warmup))
    assert rounds.warmup == warmup
    for name in "ab":
        assert [s.total_s for s in rounds.samples[name]] == script
        assert totals(rounds, name) == [1.0] * 4


@pytest.mark.parametrize("reps", [1, 2, 10, 60])
def test_asked_rounds_are_made_whatever_the_samples(reps: int) -> None:
    noisy = timed({"a": 100.0, "b": 1.0}, Plan(reps=reps), factor=NoisyMachine(1))
    clean = timed({"a": 100.0, "b": 1.0}, Plan(reps=reps, max_time_s=0.001))
    for rounds in (noisy, clean):
        assert len(rounds.counted("a")) == len(rounds.counted("b")) == reps
        assert rounds.stopped == f"{reps} {'round' if reps == 1 else 'rounds'}, as asked"
        assert not rounds.interrupted


@pytest.mark.parametrize(("least", "made"), [(9, 9), (10, 17), (17, 17), (18, 25), (26, 49)])
def test_a_plan_may_want_more_rounds_than_narrow_intervals_take(least: int, made: int) -> None:
    rounds = timed({"a": 1.0, "b": 1.0}, Plan(least=least, max_time_s=1e6))
    assert len(rounds.counted("a")) == made
    rounds = timed({"a": 1.0, "b": 1.5}, Plan(least=least, max_time_s=0.1), factor=NoisyMachine(1))
    assert len(rounds.counted("a")) == least


def narrow_after(ratios: list[float]) -> int:
    """The first look at which the interval of the ratio lies within 1 % of its middle."""
    for look, rank in RANKS.items():
        ordered = sorted(ratios[:look])
        low, high = ordered[rank - 1], ordered[-rank]
        if (high - low) / (high + low) <= 0.01:
            return look
    return LOOKS[-1]


def test_it_stops_at_the_first_look_at_which_the_ratio_is_narrow() -> None:
    random_ = random.Random(5)
    stops = Counter[int]()
    for _ in range(300):
        scale, spread = random_.uniform(0.2, 5.0), random_.uniform(0.002, 0.05)
        ratios = [scale * random_.lognormvariate(0.0, spread) for _ in range(LOOKS[-1])]
        rounds = timed({"a": 1.0, "b": [scale, *ratios]}, Plan(max_time_s=1e9))
        done = len(rounds.counted("b"))
        assert done == narrow_after(ratios)
        stops[done] += 1
        if done < LOOKS[-1]:
            assert rounds.stopped == f"every interval within 1 % after {done} rounds"
    assert set(stops) == set(LOOKS)


def test_it_looks_nowhere_else() -> None:
    """Narrow from the tenth round on, wide before: nobody sees it until the seventeenth."""
    script = [1.0, *([1.0, 2.0] * 2), *([1.0] * 100)]
    assert len(timed({"a": 1.0, "b": script}, Plan(max_time_s=1e9)).counted("a")) == 17


def test_all_ratios_have_to_be_narrow() -> None:
    wide = [1.0, *([1.0, 1.2] * 50)]
    rounds = timed({"a": 1.0, "b": 1.0, "c": wide}, Plan(max_time_s=1e9))
    assert len(rounds.counted("a")) == 49
    assert rounds.stopped == "49 rounds, the most"


def test_ratios_are_taken_to_the_reference() -> None:
    """`a` and `b` share their noise: narrow against each other, wide against the quiet `c`."""
    wide = [1.0, *([1.0, 1.2] * 50)]
    scripts: dict[str, float | Iterable[float]] = {"a": wide, "b": wide}
    assert len(timed(scripts, Plan(max_time_s=1e9)).counted("a")) == 9
    scripts = {"a": wide, "b": wide, "c": 1.0}
    for reference in (None, "a", "b", "c"):
        rounds = timed(scripts, Plan(max_time_s=1e9), reference=reference)
        assert len(rounds.counted("a")) == 49


@pytest.mark.parametrize(("spread", "expected"), [(0.001, 9), (0.2, 49)])
def test_a_strategy_alone_stops_on_the_width_of_its_median(spread: float, expected: int) -> None:
    script = [1.0, *([1.0, 1.0 + spread] * 50)]
    rounds = timed({"a": script}, Plan(max_time_s=1e9))
    assert len(rounds.counted("a")) == expected
    low, high = median_interval(totals(rounds, "a")) or (0.0, math.inf)
    assert ((high - low) / (high + low) <= 0.01) == (expected == 9)


@pytest.mark.parametrize(
    ("pass_s", "expected"), [(0.25, 19), (0.5, 9), (4.0, 9), (0.125, 39), (0.0625, 49)]
)
def test_no_round_begins_after_the_time_is_over_and_nine_are_made(
    pass_s: float, expected: int
) -> None:
    """A round of two takes 2 * pass_s, one warm-up round before them counts as time."""
    wide = [1.0, *([1.0, 1.2] * 50)]
    script = [pass_s * value for value in wide]
    partner = [2.0 * pass_s - value for value in script]
    clock = FakeClock()
    begun: list[float] = []
    subjects = {"a": FakeSubject("a", clock, script), "b": FakeSubject("b", clock, partner)}
    rounds = run_rounds(
        subjects, Plan(), clock=clock, between=lambda done, most: begun.append(clock())
    )
    assert len(rounds.counted("a")) == expected
    if expected < 49:
        assert rounds.stopped == f"--max-time 10 s after {expected} rounds"
        assert max(begun[10:], default=0.0) < 10.0 <= clock() + 1e-9


@pytest.mark.parametrize(
    ("pass_s", "repeats"), [(0.02, 1), (0.0101, 1), (0.0099, 2), (0.004, 3), (0.001, 10)]
)
def test_short_passes_are_repeated_inside_a_sample(pass_s: float, repeats: int) -> None:
    log: list[str] = []
    rounds = timed({"a": pass_s, "b": 3 * pass_s}, Plan(reps=3), log=log)
    for name, one_s in (("a", pass_s), ("b", 3 * pass_s)):
        assert [s.repeats for s in rounds.samples[name]] == [1, *[repeats] * 3]
        assert log.count(f"{name} forward") == log.count(f"{name} backward") == 1 + 3 * repeats
        assert log.count(f"{name} check") == 4
        for sample in rounds.samples[name]:
            assert sample.forward_s == pytest.approx(one_s * 0.25)
            assert sample.backward_s == pytest.approx(one_s * 0.75)
            assert sample.repeats == 1 or sample.total_s * sample.repeats >= 0.01 - 1e-9


@pytest.mark.parametrize("warmup", [0, 1])
def test_a_slow_first_pass_does_not_make_samples_short(warmup: int) -> None:
    """The first pass of a process is cold; repeats follow the fastest pass so far."""
    cold = [0.5] + [0.001] * 1000
    rounds = timed({"a": cold, "b": cold}, Plan(reps=6, warmup=warmup))
    repeats = [sample.repeats for sample in rounds.samples["a"]]
    assert repeats == [sample.repeats for sample in rounds.samples["b"]]
    assert repeats[:2] == [1, 1]
    assert repeats[2:] == [10] * (len(repeats) - 2)


def test_repeats_never_shrink() -> None:
    script = [0.001] * 11 + [0.5] * 1000
    rounds = timed({"a": script}, Plan(reps=4))
    assert [sample.repeats for sample in rounds.samples["a"]] == [1, 10, 10, 10, 10]


def test_a_pass_is_freed_before_the_next_one_starts() -> None:
    """Otherwise two passes would be held at once, and a strategy's memory with them."""
    alive: list[weakref.ref[Any]] = []
    seen: list[int] = []

    class Holder:
        """What a pass leaves behind: a graph, then gradients."""

    class Heavy(FakeSubject):
        def forward(self) -> Any:
            seen.append(sum(reference() is not None for reference in alive))
            super().forward()
            return self.kept()

        def backward(self, state: Any) -> Any:
            super().backward(0.001)
            return self.kept()

        def check(self, result: Any) -> float | None:
            return None

        def kept(self) -> Holder:
            holder = Holder()
            alive.append(weakref.ref(holder))
            return holder

    clock = FakeClock()
    run_rounds({"a": Heavy("a", clock, 0.001)}, Plan(reps=3), clock=clock)
    assert len(seen) > 10
    assert set(seen) == {0}


def test_the_page_says_what_the_code_does() -> None:
    page = " ".join((Path(__file__).parent.parent / "docs" / "statistics.md").read_text().split())
    *looks, most = LOOKS
    assert f"after {', '.join(map(str, looks))} and {most} rounds" in page
    assert f"after {most} rounds;" in page
    assert f"shorter than {SHORTEST_SAMPLE_S * 1000:g} ms" in page
    assert f"within {WIDEST_HALF_WIDTH:.0%}".replace("%", " %") in page
    assert "`--warmup` rounds (one, unless you say otherwise)" in page
    assert Plan().warmup == 1
