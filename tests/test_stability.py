"""Warnings on figures in doubt: each names a number and what to do; clean samples give none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ckptcli.measure import stability
from ckptcli.measure.machine import Machine
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan, Sample
from ckptcli.measure.stability import Load, read_load, stability_warnings
from ckptcli.profiling.profile import profile
from ckptcli.workloads.silu import SiluWorkload
from tests.records import MACHINE, STEADY, balanced_record, none_record, run_record, samples

IDLE = Load(load_average=0.1, swapped_bytes=1000)


def doubts(record: RunRecord) -> list[str]:
    """On a machine that does nothing else."""
    return stability_warnings(record, IDLE, None)


@pytest.fixture(autouse=True)
def nothing_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    swapped(monkeypatch, IDLE.swapped_bytes)


def swapped(monkeypatch: pytest.MonkeyPatch, total_bytes: int | None) -> None:
    monkeypatch.setattr(stability, "swapped_bytes", lambda: total_bytes)


def on_machine(**changes: Any) -> RunRecord:
    return run_record(machine=replace(MACHINE, **changes))


def of_times(times_s: Sequence[float]) -> list[str]:
    """The warnings on `balanced` having taken these times."""
    return doubts(run_record(none_record(), balanced_record(times_s)))


def the_only(warnings: list[str]) -> str:
    (warning,) = warnings
    return warning


@pytest.mark.parametrize("times_s", [STEADY, [0.1] * 9, [0.1], [], [0.1, 0.3, 0.1], [1e-6] * 49])
def test_clean_samples_give_none(times_s: Sequence[float]) -> None:
    assert of_times(times_s) == []


def test_an_unknown_load_gives_none() -> None:
    assert stability_warnings(run_record(), Load(None, None), None) == []


@pytest.mark.parametrize(
    ("cores", "load", "warned"),
    [(8, 4.0, False), (8, 4.1, True), (2, 1.0, False), (2, 1.5, True), (None, 0.6, True)],
)
def test_load(cores: int | None, load: float, warned: bool) -> None:
    warnings = stability_warnings(on_machine(cores=cores), Load(load, None), None)
    if warned:
        assert f"load average was {load:.1f} on {cores or 1} core" in the_only(warnings)
        assert "close other programs, or use more --reps" in warnings[0]
    else:
        assert warnings == []


@pytest.mark.parametrize("waiting", [None, "PyTorch"])
def test_on_a_loaded_machine_one_thread_is_advised_for_a_library_that_waits(
    waiting: str | None,
) -> None:
    machine = replace(MACHINE, cores=2, blas_threads=1)
    found = the_only(stability_warnings(run_record(machine=machine), Load(2.0, None), waiting))
    advice = "or use more --reps, and for PyTorch --threads 1"
    assert found.endswith(advice) == (waiting is not None)


@pytest.mark.parametrize(
    ("backend", "threads", "advised"),
    [("numpy", None, False), ("torch", None, True), ("torch", 1, False)],
)
def test_the_library_that_computes_says_whether_it_waits(
    backend: str, threads: int | None, advised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("ckptcli.profiling.profile.read_load", lambda: Load(1e6, None))
    config: dict[str, object] = {"threads": threads}
    record = profile(SiluWorkload(1, 4), ["none"], backend=backend, plan=Plan(1, 0), config=config)
    (warning,) = [text for text in record.warnings if text.startswith("the load average")]
    assert warning.endswith("and for PyTorch --threads 1") == advised


def test_core_type() -> None:
    warning = the_only(
        stability_warnings(
            on_machine(openblas_variables={"OPENBLAS_CORETYPE": "Nehalem"}), IDLE, None
        )
    )
    assert "OPENBLAS_CORETYPE is set to Nehalem, which can halve the speed" in warning
    assert "unset it" in warning


def test_other_openblas_variables_are_harmless() -> None:
    variables = {"OPENBLAS_NUM_THREADS": "4", "OPENBLAS_VERBOSE": "1"}
    assert doubts(on_machine(openblas_variables=variables)) == []


@pytest.mark.parametrize(
    ("asked", "used", "warned"),
    [
        *[(None, 8, False), (8, 8, False), (2, None, False), (2, 8, True), (16, 8, True)],
        (2, 1, True),
    ],
)
def test_threads(asked: int | None, used: int | None, warned: bool) -> None:
    machine: Machine = replace(MACHINE, blas_threads=used)
    warnings = stability_warnings(
        run_record(machine=machine, config={"threads": asked}), IDLE, None
    )
    if warned:
        noun = "thread" if used == 1 else "threads"
        assert the_only(warnings).startswith(f"the BLAS uses {used} {noun}, {asked} were asked")
        assert "set OPENBLAS_NUM_THREADS before the start" in warnings[0]
    else:
        assert warnings == []


def test_threads_of_a_record_without_the_setting() -> None:
    assert doubts(run_record(config={})) == []


def test_swapping(monkeypatch: pytest.MonkeyPatch) -> None:
    swapped(monkeypatch, 1000 + 3 * 2**20)
    warning = the_only(doubts(run_record()))
    assert warning.startswith("3.0 MiB were swapped during the run")
    assert "use a smaller --n or --layers" in warning
    swapped(monkeypatch, None)
    assert doubts(run_record()) == []


def test_a_collection_inside_samples() -> None:
    counted = list(samples(STEADY))
    for position in (2, 5):
        counted[position] = replace(counted[position], collected=True)
    record = run_record(none_record(), balanced_record(samples=tuple(counted)))
    warning = the_only(doubts(record))
    assert warning.startswith("balanced: the garbage collector ran inside 2 of 9 samples")
    assert "do not enable it" in warning


def test_a_collection_is_told_of_one_sample_too() -> None:
    only = (Sample(0.1, 0.1, collected=True),)
    record = run_record(none_record(samples=only), balanced_record([0.2]))
    assert the_only(doubts(record)).startswith("none: the garbage collector")


def test_a_slow_first_round() -> None:
    """Deviations of 1 ms about 100 ms: the first may be 14.8 ms late."""
    others = [0.099, 0.100, 0.101, 0.099, 0.100, 0.101, 0.099, 0.101]
    warning = the_only(of_times([0.230, *others]))
    assert warning == "balanced: the first round took 2.3 times the median; use --warmup 2"
    assert of_times([0.1145, *others]) == []
    assert len(of_times([0.1155, *others])) == 1
    assert of_times([*others, 0.230]) == [], "a slow round later on is a spike"
    assert of_times([0.05, *others]) == [], "a fast first round is no trouble"


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_the_advice_is_one_more_than_there_was(warmup: int) -> None:
    slow = balanced_record([0.2, *STEADY], warmup=samples([0.1] * warmup))
    warning = the_only(doubts(run_record(none_record(), slow)))
    assert warning.endswith(f"; use --warmup {warmup + 1}")


def test_a_slow_first_round_among_equal_ones() -> None:
    """No deviation at all: one hundredth of the median stands in for it."""
    assert of_times([0.1145, *[0.1] * 8]) == []
    assert "1.2 times the median" in the_only(of_times([0.1155, *[0.1] * 8]))


def test_a_wide_spread() -> None:
    wide = [0.100, 0.080, 0.085, 0.090, 0.095, 0.105, 0.110, 0.115, 0.120]
    warning = the_only(of_times(wide))
    assert warning.startswith("balanced: the middle half of the times spreads over 20 % of the me")
    assert "close other programs, fix the clock rate, or use more --reps" in warning
    assert of_times([0.1 + 0.45 * (t - 0.1) for t in wide]) == [], "9 % is usual"


def test_few_samples_are_not_judged() -> None:
    assert of_times([0.9, 0.1, 0.2, 0.5, 0.1]) == []


def test_all_at_once_in_a_fixed_order() -> None:
    """The machine first, then strategy by strategy."""
    record = run_record(
        none_record([0.5, *STEADY]),
        balanced_record([0.5, *STEADY]),
        machine=replace(MACHINE, openblas_variables={"OPENBLAS_CORETYPE": "Prescott"}),
        config={"threads": 1},
    )
    warnings = stability_warnings(record, Load(20.0, 0), None)
    starts = ["the load", "OPENBLAS", "the BLAS", "1000 B were swapped", "none: ", "balanced: "]
    assert len(warnings) == len(starts)
    for warning, start in zip(warnings, starts):
        assert warning.startswith(start)
        assert "; " in warning, "every warning ends with advice"


def test_the_load_of_this_machine_is_read() -> None:
    load = read_load()
    if hasattr(os, "getloadavg"):
        assert load.load_average is not None
        assert load.load_average >= 0.0
