"""What fits: the search against functions that are known, the command against `ckpt run`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.cli.main import run_command
from ckptcli.sweep.fitting.answer import Peak, Refused
from ckptcli.sweep.fitting.ladder import Sizes, ladder
from ckptcli.sweep.fitting.search import MOST_MEASURED, fit
from tests.backend_kit import NEEDS_TORCH

KEYS = ["strategy", "largest", "peak_bytes", "next_peak_bytes", "proven", "time_s"]
SET = ("--set", "depth=2")

MODULE = """
import torch
from torch import nn


def make(depth=3, batch=4, heads=1, width=16):
    if width % heads:
        raise ValueError(f"{heads} heads do not divide {width}")
    up, down = lambda: nn.Linear(width, 4 * width), lambda: nn.Linear(4 * width, width)
    parts = [nn.Sequential(up(), nn.GELU(), down()) for _ in range(depth)]
    return nn.Sequential(*parts), torch.rand(batch, width)
"""

REFUSING = """
import torch
from torch import nn


def make(batch=16):
    if batch % 4:
        raise ValueError("a batch is a multiple of 4")
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(2)]
    return nn.Sequential(*layers), torch.ones(batch, 16)
"""


def found(
    peak: Callable[[int], Peak],
    limit_bytes: int,
    largest_measured: int = 10**12,
    step: int = 1,
    smallest: int = 1,
    confirm: Callable[[int], Peak | Refused] | None = None,
) -> tuple[Any, list[int]]:
    """The answer for a program whose peaks are `peak`'s, and the sizes that were measured."""
    known: dict[int, Peak] = {}
    measured: list[int] = []

    def climb(size: int) -> int | None:
        if size < smallest:
            return None
        known[size] = peak(size)
        return known[size].peak_bytes

    def measure(size: int) -> Peak | Refused:
        measured.append(size)
        if size % step or size < smallest:
            return Refused("it is not divisible")
        return peak(size) if size <= largest_measured else Refused("it took longer")

    sizes = Sizes("layers", step)
    ladder(sizes, climb, limit_bytes)
    return fit("none", sizes, known, limit_bytes, measure, confirm), measured


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 200),
    st.integers(1, 1000),
    st.integers(0, 10**5),
    st.integers(0, 5000),
    st.integers(1, 64),
    st.integers(10**3, 10**10),
)
def test_the_answer_fits_and_the_next_size_does_not(
    square: int, line: int, fixed: int, workspace: int, block: int, limit_bytes: int
) -> None:
    """The workspace comes in blocks and in no law."""

    def peak(size: int) -> Peak:
        ledger = square * size**2 + line * size + fixed
        return Peak(ledger, ledger + workspace * (size // block % 7))

    def never_falls(size: int) -> Peak:
        return Peak(peak(size).ledger_bytes, peak(size).ledger_bytes + workspace * (size // block))

    answer, measured = found(never_falls, limit_bytes)
    assert answer.proven
    assert answer.largest == 0 or answer.peak_bytes <= limit_bytes
    assert answer.next_peak_bytes > limit_bytes
    assert answer.next_peak_bytes == never_falls(answer.largest + 1).peak_bytes
    assert len(measured) <= MOST_MEASURED
    loose, _ = found(peak, limit_bytes)
    assert not loose.proven or loose.next_peak_bytes > limit_bytes


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 50), st.integers(10**3, 10**8))
def test_without_a_law_it_is_found_by_measuring(step: int, limit_bytes: int) -> None:
    def peak(size: int) -> Peak:
        return Peak(*[100 * size + 700 * int(size**0.5) * step] * 2)

    answer, _ = found(peak, limit_bytes)
    assert answer.proven
    assert peak(answer.largest + 1).peak_bytes > limit_bytes
    assert answer.largest == 0 or peak(answer.largest).peak_bytes <= limit_bytes


def test_what_the_machine_cannot_run_is_told_by_law() -> None:
    answer, measured = found(lambda n: Peak(100 * n * n + 8, 100 * n * n + 58), 10**13, 10**4)
    assert (answer.largest, answer.proven, answer.how) == (316227, False, "by law")
    assert answer.peak_bytes == 100 * 316227**2 + 58 <= 10**13 < answer.next_peak_bytes
    assert measured == [316227]
    assert answer.why == "layers = 316227: it took longer"
    answer, _ = found(lambda n: Peak(*[int(900 * n**1.5)] * 2), 10**13, 10**4)
    assert (answer.largest, answer.peak_bytes, answer.proven) == (None, None, False)
    assert answer.measured_up_to == 8192
    assert answer.why == (
        "its peak follows no polynomial in layers; layers = 8192 fits. layers = 16384: it took "
        "longer"
    )


def test_a_search_without_a_law_ends() -> None:
    """Of a peak that grows by less and less: it is said how far it came."""
    answer, measured = found(lambda n: Peak(*[int(1000 * math.log2(n + 1))] * 2), 10**5)
    assert len(measured) < MOST_MEASURED
    assert answer.largest is None
    assert f"layers = {answer.measured_up_to} fits" in answer.why


def test_a_search_for_a_jump_ends() -> None:
    """No line through the ends leads to it."""

    def peak(size: int) -> Peak:
        return Peak(*[int(10 * size**0.8) if size < 2 * 10**11 else 10**14] * 2)

    answer, measured = found(peak, 10**12)
    assert len(measured) == MOST_MEASURED
    assert answer.largest is None
    assert answer.why.endswith(f"does not. the search ended after {MOST_MEASURED} sizes")


def test_what_does_not_grow_fits_at_every_size() -> None:
    answer, _ = found(lambda n: Peak(500, 500), 1000)
    assert (answer.largest, answer.proven, answer.how) == (None, False, "")
    assert "does not grow with layers" in answer.why


def test_what_grows_to_beyond_every_size_that_is_looked_at_is_not_said_not_to_grow() -> None:
    answer, measured = found(lambda n: Peak(36 * n * n, 36 * n * n), 10**30)
    assert (answer.largest, answer.proven, measured) == (None, False, [])
    assert answer.why == f"by law layers = {2**39} still fits; nothing larger is looked at"


def test_a_program_that_is_large_at_any_size_is_looked_at_where_the_size_counts() -> None:
    """Parameters are most of it up to a batch of thousands: half a gigabyte, a constant law."""
    fixed, limit_bytes = 514 * 2**20, 24 * 10**9

    def peak(size: int) -> Peak:
        return Peak(*[max(fixed + 4 * size, 200 * 2**20 + 91_000 * size)] * 2)

    answer, measured = found(peak, limit_bytes)
    assert answer.proven
    assert answer.law.text == f"91000 layers + {200 * 2**20}"
    assert peak(answer.largest).peak_bytes <= limit_bytes < peak(answer.largest + 1).peak_bytes
    assert len(measured) == 2


@given(st.integers(100, 5000), st.integers(2, 40), st.integers(10**8, 10**11))
@settings(max_examples=60, deadline=None)
def test_a_law_that_ends_beyond_the_ladder_costs_few_sizes(
    slope: int, steeper: int, limit_bytes: int
) -> None:
    """From 10,000 on another part of the pass sets the peak, whose slope is `steeper` times it."""

    def peak(size: int) -> Peak:
        other = slope * 10_000 + slope * steeper * (size - 10_000)
        ledger = max(slope * size, other) + 5 * 10**7
        return Peak(ledger, ledger + 4096 * (size // 1000 % 3))

    answer, measured = found(peak, limit_bytes)
    assert answer.proven
    assert peak(answer.largest).peak_bytes <= limit_bytes < peak(answer.largest + 1).peak_bytes
    assert len(measured) <= 20


def test_nothing_fits() -> None:
    answer, measured = found(lambda n: Peak(5000 * n, 5000 * n), 1000)
    assert (answer.largest, answer.peak_bytes, answer.next_peak_bytes) == (0, None, 5000)
    assert answer.proven
    assert measured == [1]


@given(st.integers(2, 64), st.integers(10**4, 10**9))
@settings(max_examples=30, deadline=None)
def test_sizes_are_multiples_of_what_is_asked_for(step: int, limit_bytes: int) -> None:
    """Of a width that heads divide no other size is looked at; the next one is a step further."""

    def peak(size: int) -> Peak:
        return Peak(3 * size**2 + 100, 3 * size**2 + 164)

    answer, measured = found(peak, limit_bytes, step=step)
    assert all(size % step == 0 for size in measured)
    assert answer.proven
    assert answer.largest % step == 0
    assert answer.largest == 0 or peak(answer.largest).peak_bytes <= limit_bytes
    assert answer.next_peak_bytes == peak(answer.largest + step).peak_bytes > limit_bytes


def test_a_small_size_that_the_program_refuses_is_passed_over() -> None:
    answer, _ = found(lambda n: Peak(100 * n, 100 * n), 10**6, smallest=12)
    assert (answer.largest, answer.proven) == (10**4, True)
    answer, _ = found(lambda n: Peak(100 * n, 100 * n), 1000, smallest=12)
    assert not answer.proven
    assert "it is not divisible" in answer.why


def test_a_plan_that_takes_more_where_it_is_run_is_none() -> None:
    """What was planned is run; kernels take 50 bytes that no plan knows of."""
    limit_bytes = 10**5
    for extra, is_least, largest in ((0, True, 1000), (50, True, 999), (50, False, 999)):
        answer, _ = found(
            lambda n: Peak(100 * n, 100 * n, is_least=is_least),  # noqa: B023
            limit_bytes,
            confirm=lambda n: Peak(100 * n, 100 * n + extra),  # noqa: B023
        )
        assert (answer.largest, answer.peak_bytes) == (largest, 100 * largest + extra)
        assert answer.proven == (is_least and not extra)
    answer, _ = found(lambda n: Peak(100 * n, 100 * n), 10**5, confirm=lambda n: Refused("no"))
    assert (answer.largest, answer.proven, answer.how) == (1000, False, "planned")
    assert answer.why == "layers = 1000: no"


def test_a_law_that_begins_later_is_the_one_that_counts() -> None:
    answer, _ = found(lambda n: Peak(*[max(50_000, 3000 * n)] * 2), 10**10)
    assert answer.largest == 10**10 // 3000
    assert answer.law.text == "3000 layers"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "there is no limit to fit into"),
        (("--device-memory", "much"), "is no size above 0"),
        (("--device-memory", "1MB", "--over", "depth"), "is nothing that a workload has"),
        (("--device-memory", "1MB", "--over", "steps"), "--over steps has no effect on workload"),
        (
            ("--device-memory", "1MB", "--module", "net.py:make"),
            "a keyword of MAKE, of depth, width",
        ),
        (
            ("--device-memory", "1MB", "--module", "net.py:make", "--over", "n"),
            "takes no keyword `n`, only depth, width",
        ),
        (
            ("--device-memory", "1MB", "--module", "net.py:make", "--over", "depth", *SET),
            "--set depth and --over depth are about one keyword",
        ),
        (("--device-memory", "1MB", "--function", "net.py:make"), "its MAKE takes no size"),
        (
            ("--device-memory", "1MB", "--function", "f.py:make", "--module", "net.py:make"),
            "are two programs",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(
    words: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("def make(depth=2, width=8): ...")
    assert run_command(["fits", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_edge_is_where_a_run_says_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The point fits, the next one is refused; no plan is known for the next of the best plan."""
    monkeypatch.chdir(tmp_path)
    limit = ("--device-memory", "300KB")
    words = ("fits", *limit, "-l", "4", "--over", "n", "--json", "--out", "f")
    assert run_command([*words, "-s", "none", "-s", "sqrt", "--memory-only"]) == 0
    object_ = json.loads(capsys.readouterr().out)
    assert (object_["schema"], object_["over"]) == ("ckpt.fits/1", "n")
    entries = object_["strategies"]
    assert [entry["strategy"] for entry in entries] == ["none", "sqrt", "best plan"]
    for entry in entries:
        assert list(entry)[:6] == KEYS
        assert (entry["proven"], entry["time_s"]) == (True, None)
        name = entry["plan"] or entry["strategy"]
        one = ("-s", name, "--no-reference", "-l", "4", *limit, "--memory-only")
        assert run_command(["run", *one, "-n", str(entry["largest"]), "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["strategies"]
        assert row["peak_bytes"] == entry["peak_bytes"] <= 300_000 < entry["next_peak_bytes"]
        assert run_command(["run", *one, "-n", str(entry["largest"] + 1)]) == 1
        told = capsys.readouterr().err
        assert f"{name}: out of memory" in told or (entry["plan"] and "no plan of n = " in told)
    assert entries[2]["largest"] >= max(entry["largest"] for entry in entries[:2])


@pytest.mark.long
@pytest.mark.slow
@NEEDS_TORCH
def test_a_module_fits_with_its_keyword_so_large(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(MODULE)
    limit = ("--device-memory", "200KB", "--module", "net.py:make")
    words = ("fits", *limit, "--over", "batch", "--fake", "--json", "--set", "depth=4")
    assert run_command([*words, "-s", "none", "-s", "remat"]) == 0
    entries = json.loads(capsys.readouterr().out)["strategies"]
    assert [entry["strategy"] for entry in entries] == ["none", "remat", "best plan"]
    assert [entry["how"] for entry in entries[:2]] == ["by shapes", "by shapes"]
    for entry in entries:
        one = ("-s", entry["plan"] or entry["strategy"], "--set", "depth=4", *limit, "--fake")
        assert entry["peak_bytes"] <= 200_000 < entry["next_peak_bytes"]
        for size, refused in ((entry["largest"], False), (entry["largest"] + 1, True)):
            run_command(["run", *one, "--set", f"batch={size}", "-q"])
            assert f"Error: {one[1]}: out of memory" in capsys.readouterr().err or not refused


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("words", [("--memory-only",), ("--fake",)])
def test_a_module_is_held_to_the_memory_of_a_device(
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What peaks above it is left out and named; where nothing fits there is no record."""
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(MODULE)
    run = ("run", "--module", "net.py:make", "--set", "batch=64", "-s", "none", "-s", "remat")
    run = (*run, *words, "--json", "-q", "--device-memory")
    assert run_command([*run, "1GB"]) == 0
    rows = json.loads(capsys.readouterr().out)["strategies"]
    low, high = sorted(rows, key=lambda row: row["peak_bytes"])
    assert run_command([*run, str(high["peak_bytes"] - 1)]) == 1
    told = capsys.readouterr()
    assert [row["strategy"] for row in json.loads(told.out)["strategies"]] == [low["strategy"]]
    assert f"Error: {high['strategy']}: out of memory" in told.err
    assert f"Error: {low['strategy']}: out of memory" not in told.err
    assert run_command([*run, str(low["peak_bytes"] - 1)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert f"Error: {low['strategy']}: out of memory" in told.err


@pytest.mark.long
@pytest.mark.slow
@NEEDS_TORCH
def test_a_keyword_may_have_to_be_a_multiple(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(MODULE)
    words = ("fits", "--device-memory", "100KB", "--module", "net.py:make", "--over", "width")
    heads = ("--set", "heads=8", "--no-plan", "-s", "none", "--memory-only", "--multiple-of", "8")
    assert run_command([*words, *heads, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["strategies"]
    assert entry["proven"]
    assert entry["largest"] % 8 == 0


@pytest.mark.long
@pytest.mark.slow
@NEEDS_TORCH
def test_a_plan_that_is_said_by_law_has_the_workspace_that_other_strategies_showed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of a module knows none; where the module refuses the size, none is run there."""
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(REFUSING)
    words = ("fits", "--device-memory", "100KB", "--module", "net.py:make", "--over", "batch")
    assert run_command([*words, "-s", "remat", "--memory-only", "--json"]) == 0
    remat, best = json.loads(capsys.readouterr().out)["strategies"][-2:]
    assert (remat["how"], best["how"], best["law"]) == ("by law", "by law", remat["law"])
    assert (best["largest"], best["peak_bytes"]) == (remat["largest"], remat["peak_bytes"])


@pytest.mark.long
@pytest.mark.slow
def test_the_time_is_told_by_law(capsys: pytest.CaptureFixture[str]) -> None:
    """What no machine has is refused before anything of it is allocated."""
    words = ("fits", "--device-memory", "900TB", "-n", "512", "--over", "layers", "--reps", "1")
    assert run_command([*words, "-s", "none", "-q", "--no-plan"]) == 0
    screen = capsys.readouterr().out
    assert "by law" in screen
    assert "extrapolated" in screen


def test_a_law_is_called_what_it_is_of(capsys: pytest.CaptureFixture[str]) -> None:
    """Of plans it has the workspace of kernels, which a ledger does not count."""
    words = ("--over", "layers", "--device-memory", "300KiB", "-n", "64", "--memory-only")
    assert run_command(["fits", *words, "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["strategies"][-1]
    per_layer, rest = map(int, re.findall(r"\d+", best["law"]))
    assert per_layer * (best["largest"] + 1) + rest == best["next_peak_bytes"]
    assert run_command(["fits", *words]) == 0
    screen = capsys.readouterr().out
    assert f"best plan: the least that a plan takes = {best['law']} B" in screen
    assert screen.count("ledger's peak") == 2


@pytest.mark.slow
def test_a_column_without_a_time_is_left_out_and_a_size_in_bytes_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["fits", "--device-memory", "100", "-l", "2", "--memory-only", "-s", "none", "-q"]
    assert run_command([*words, "--no-plan", "--width", "200"]) == 0
    screen = capsys.readouterr().out
    assert "within 100 B\n" in screen
    assert "time of a pass" not in screen
    assert "44 B, " not in screen
    assert "44 B" in screen
