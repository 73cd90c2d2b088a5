"""Verdicts under scripted drift and spikes: how often they are wrong, and how often they find it.

Seeded runs of the simulation in `docs/statistics.md`; no clock is read.
"""

from __future__ import annotations

import math
from collections import Counter

import pytest

from ckptcli.measure.rounds import Plan
from ckptcli.measure.statistics import paired_ratio
from tests.fake_clock import NoisyMachine, timed, totals

pytestmark = pytest.mark.usefixtures("nothing_set_aside")


def test_a_steady_drift_makes_nothing_slower() -> None:
    """Each pass is 3 % slower than the one before it: the reversal cancels it."""
    passes = iter(range(1000))
    rounds = timed(
        {"a": 1.0, "b": 1.0}, Plan(reps=25), factor=lambda: math.exp(0.03 * next(passes))
    )
    ratio = paired_ratio(totals(rounds, "b"), totals(rounds, "a"))
    assert (ratio.low, ratio.high) == pytest.approx((math.exp(-0.03), math.exp(0.03)))
    assert ratio.verdict == "unclear"


def simulated(seed: int, shift: float, plan: Plan, others: int = 1) -> list[str]:
    """The verdicts on strategies that take `shift` times the reference's time."""
    machine = NoisyMachine(seed)
    names = [f"s{i}" for i in range(others)]
    rounds = timed(
        {"reference": 0.1, **dict.fromkeys(names, 0.1 * shift)},
        plan,
        reference="reference",
        factor=machine,
    )
    base = totals(rounds, "reference")
    return [paired_ratio(totals(rounds, name), base, comparisons=others).verdict for name in names]


@pytest.mark.slow
def test_identical_strategies_are_told_apart_in_at_most_one_run_in_twenty() -> None:
    """Drift and spikes; 3 % of a long simulation, with or without drift."""
    verdicts = Counter(
        verdict
        for seed in range(500)
        for verdict in simulated(seed, 1.0, Plan(seed=seed, max_time_s=1e9))
    )
    assert verdicts["faster"] + verdicts["slower"] <= 25
    assert verdicts["same"] >= 350


@pytest.mark.slow
def test_four_identical_strategies_are_told_apart_no_more_often() -> None:
    """Any false word among three comparisons counts as one false run."""
    false_runs = sum(
        bool({"faster", "slower"} & set(simulated(seed, 1.0, Plan(reps=25, seed=seed), others=3)))
        for seed in range(500)
    )
    assert false_runs <= 25


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("shift", "verdict"), [(1.05, "slower"), (1.0 / 1.05, "faster")])
@pytest.mark.slow
def test_a_shift_of_five_percent_is_found_at_25_rounds(shift: float, verdict: str) -> None:
    found = [simulated(seed, shift, Plan(reps=25, seed=seed))[0] for seed in range(500)]
    assert found.count(verdict) >= 475


def test_the_simulated_drift_would_fool_a_measurement_in_blocks() -> None:
    """One strategy after the other, the same noise, the same interval: a control."""
    verdicts = Counter[str]()
    for seed in range(200):
        machine = NoisyMachine(seed)
        first, second = ([machine() for _ in range(25)] for _ in range(2))
        verdicts[paired_ratio(second, first).verdict] += 1
    assert verdicts["faster"] + verdicts["slower"] > 100
