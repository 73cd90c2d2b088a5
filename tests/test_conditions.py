"""`--fail-on`: the grammar, and when a condition fires."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.measure.analysis import analysed
from ckptcli.measure.conditions import EXACT, TIMES, Subject, fired, parse_condition
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan, Sample
from ckptcli.measure.row import Passes
from ckptcli.options.output import METRICS
from ckptcli.profiling.profile import profile
from ckptcli.workloads.silu import SiluWorkload


@pytest.fixture(scope="module")
def measured() -> RunRecord:
    return profile(SiluWorkload(layers=2, n=16), plan=Plan(reps=1))


def with_times(record: RunRecord, none_s: list[float], balanced_s: list[float]) -> list[Subject]:
    """The strategies of `record` as if these had been their forward and backward times."""
    scripted = [
        replace(row, passes=Passes((), tuple(Sample(t / 2, t / 2) for t in times)))
        for row, times in zip(record.rows, (none_s, balanced_s))
    ]
    whole = analysed(replace(record, rows=tuple(scripted)))
    reference = whole.reference_of(whole.rows[0])
    return [
        Subject(s.strategy, s, None if s is reference else reference, s.ratios, s is reference)
        for s in whole.rows
    ]


STEADY = [1.0 + 0.001 * (i % 3) for i in range(9)]
SLOWER = [1.10 * t for t in STEADY]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("time > 10%", (None, "time", ">", 10.0, True)),
        ("balanced.peak_bytes>=64MiB", ("balanced", "peak_bytes", ">=", 64 * 2**20, False)),
        ("saved_bytes < 1.5 GiB", (None, "saved_bytes", "<", 1.5 * 2**30, False)),
        ("peak_bytes > 4096", (None, "peak_bytes", ">", 4096.0, False)),
        ("remat:every=2.recomputed <= 20", ("remat:every=2", "recomputed", "<=", 20.0, False)),
        ("backward > 250%", (None, "backward", ">", 250.0, True)),
        ("peak_bytes > 64 KB", (None, "peak_bytes", ">", 64e3, False)),
        ("ledger_peak_bytes > 2kib", (None, "ledger_peak_bytes", ">", 2048.0, False)),
        ("time > 1.5ms", (None, "time", ">", 1.5e-3, False)),
        ("backward > 20 us", (None, "backward", ">", 20 * 1e-6, False)),
        ("time > 2 s", (None, "time", ">", 2.0, False)),
        ("forward > 1e-3", (None, "forward", ">", 1e-3, False)),
    ],
)
def test_grammar(text: str, parts: tuple[object, ...]) -> None:
    condition = parse_condition(text)
    assert (
        condition.strategy,
        condition.metric,
        condition.comparison,
        condition.value,
        condition.percent,
    ) == parts


@pytest.mark.parametrize(
    "text", ["", "time", "time >", "time > much", "> 3", "time = 3", "time >3x"]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-on"):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("time > 3x", "a time is in seconds, or ends with s ms µs ns us; or with %"),
        ("peak_bytes > 1ms", "a size is in bytes, or ends with B KB"),
        ("recomputed > 1s", "recomputed is a number of nodes, or ends with %"),
    ],
)
def test_a_value_of_no_known_unit_names_those_that_are(text: str, taken: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_condition(text)
    assert taken in str(refused.value)


def test_the_help_names_every_metric() -> None:
    assert set(METRICS) == {*TIMES, *EXACT}


def test_an_unknown_metric_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="peak_bytes"):
        parse_condition("peak_byte > 3")


def test_a_time_fires_only_when_the_near_end_crosses(measured: RunRecord) -> None:
    subjects = with_times(measured, STEADY, SLOWER)
    assert fired(parse_condition("time > 9%"), subjects)
    assert not fired(parse_condition("time > 11%"), subjects)
    noisy = with_times(measured, STEADY, [0.9, 1.3, 1.2, 1.1, 1.25, 0.95, 1.15, 1.12, 1.3])
    assert not fired(parse_condition("time > 9%"), noisy)


def test_a_time_in_seconds(measured: RunRecord) -> None:
    subjects = with_times(measured, STEADY, SLOWER)
    assert fired(parse_condition("balanced.time > 1.05"), subjects)
    assert not fired(parse_condition("none.time > 1.05"), subjects)
    assert fired(parse_condition("none.time < 1.05"), subjects)


def test_too_few_rounds_never_fail_on_a_time(measured: RunRecord) -> None:
    subjects = with_times(measured, [1.0] * 5, [9.0] * 5)
    assert not fired(parse_condition("time > 1%"), subjects)
    assert not fired(parse_condition("time > 0.001"), subjects)


def test_an_exact_figure_fires_on_its_value(measured: RunRecord) -> None:
    subjects = with_times(measured, STEADY, STEADY)
    tensor = 16 * 16 * 4
    assert fired(parse_condition(f"none.saved_bytes >= {5 * tensor}"), subjects)
    assert not fired(parse_condition(f"none.saved_bytes > {5 * tensor}"), subjects)
    assert fired(parse_condition("recomputed > 2"), subjects)
    assert not fired(parse_condition("recomputed > 3"), subjects)


def test_a_change_is_against_the_reference(measured: RunRecord) -> None:
    subjects = with_times(measured, STEADY, STEADY)
    assert fired(parse_condition("saved_bytes < -59%"), subjects)
    assert not fired(parse_condition("saved_bytes < -61%"), subjects)
    assert fired(parse_condition("recomputed > 1000%"), subjects)


def test_without_a_strategy_the_reference_is_left_out(measured: RunRecord) -> None:
    subjects = with_times(measured, SLOWER, STEADY)
    assert not fired(parse_condition("time > 1.05"), subjects)


def test_an_unknown_strategy_is_refused(measured: RunRecord) -> None:
    with pytest.raises(UnknownNameError, match="did you mean `balanced`"):
        fired(parse_condition("balancd.time > 3"), with_times(measured, STEADY, STEADY))


def test_a_change_needs_something_to_compare_with(measured: RunRecord) -> None:
    alone = [replace(with_times(measured, STEADY, STEADY)[1], base=None, ratios=None)]
    with pytest.raises(UsageError, match="no reference"):
        fired(parse_condition("saved_bytes > 3%"), alone)
