"""What fits: the search against functions that are known, the command against `ckpt run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.cli.main import run_command
from ckptcli.sweep.fits import Peak, fit, ladder


def found(
    peak: Callable[[int], Peak], limit_bytes: int, largest_measured: int = 10**12
) -> tuple[Any, list[int]]:
    """The answer for a program whose peaks are `peak`'s, and the sizes that were measured."""
    known: dict[int, Peak] = {}
    measured: list[int] = []

    def climb(size: int) -> int | None:
        known[size] = peak(size)
        return known[size].peak_bytes

    def measure(size: int, strategy: str) -> Peak | None:
        measured.append(size)
        return peak(size) if size <= largest_measured else None

    ladder("layers", climb, limit_bytes)
    return fit("none", "layers", known, limit_bytes, measure), measured


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
    assert len(measured) <= 60
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
    assert (answer.largest, answer.proven) == (316227, False)
    assert answer.peak_bytes == 100 * 316227**2 + 58 <= 10**13 < answer.next_peak_bytes
    assert measured == [316227]
    answer, _ = found(lambda n: Peak(*[int(900 * n**1.5)] * 2), 10**13, 10**4)
    assert (answer.largest, answer.peak_bytes, answer.proven) == (None, None, False)


def test_a_law_that_begins_later_is_the_one_that_counts() -> None:
    answer, _ = found(lambda n: Peak(*[max(50_000, 3000 * n)] * 2), 10**10)
    assert answer.largest == 10**10 // 3000
    assert answer.law.text == "3000 layers"


def test_a_command_without_a_limit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["fits"]) == 2
    assert "there is no limit to fit into" in capsys.readouterr().err
    assert run_command(["fits", "--device-memory", "much"]) == 2
    assert "is no size above 0" in capsys.readouterr().err


@pytest.mark.slow
def test_the_edge_is_where_a_run_says_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The point fits, the next one is refused."""
    monkeypatch.chdir(tmp_path)
    limit = ("--device-memory", "300KB")
    words = ("fits", *limit, "-l", "4", "--over", "n", "--json", "--out", "f")
    assert run_command([*words, "-s", "none", "-s", "balanced", "--memory-only"]) == 0
    object_ = json.loads(capsys.readouterr().out)
    assert (object_["schema"], object_["over"]) == ("ckpt.fits/1", "n")
    assert [entry["strategy"] for entry in object_["strategies"]] == ["none", "balanced"]
    for entry in object_["strategies"]:
        assert entry["proven"]
        assert entry["time_s"] is None
        one = ("-s", entry["strategy"], "--no-reference", "-l", "4", *limit, "--memory-only")
        assert run_command(["run", *one, "-n", str(entry["largest"]), "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["strategies"]
        assert row["peak_bytes"] == entry["peak_bytes"]
        assert run_command(["run", *one, "-n", str(entry["largest"] + 1)]) == 1
        assert f"{entry['strategy']}: out of memory" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.slow
def test_the_time_is_told_by_law(capsys: pytest.CaptureFixture[str]) -> None:
    """What no machine has is refused before anything of it is allocated."""
    words = ("fits", "--device-memory", "900TB", "-n", "512", "--over", "layers", "--reps", "1")
    assert run_command([*words, "-s", "none", "-q"]) == 0
    screen = capsys.readouterr().out
    assert "by law" in screen
    assert "extrapolated" in screen
