"""A saved run is what it was: written, read and written again, whatever its figures and names are.

Through the command and its JSON alone. A run of an earlier version is the start; what it says must
still be said, in the same keys.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ckptcli.cli.main import run_command
from tests.saved_runs import OLD_RUN, refused_peer, saved_run, timed_peer

TIMES_S = st.floats(1e-9, 1e6, allow_nan=False)
BYTES = st.integers(0, 2**62)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BY_WORD = st.dictionaries(WORDS.filter(bool), st.integers(1, 10**9), max_size=3)


def shown(run: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What `ckpt show --json` makes of it."""
    path = folder / "run.json"
    path.write_text(json.dumps(run), encoding="utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run_command(["show", str(path), "--json"]) == 0
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """The places where `new` does not say what `old` says; it may say more."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            difference
            for key, value in old.items()
            for difference in (
                differences(value, new[key], f"{place}.{key}")
                if key in new
                else [f"{place}.{key} is gone"]
            )
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{place}[{i}]")]
    if isinstance(old, float) and isinstance(new, float) and math.isclose(old, new, rel_tol=1e-12):
        return []  # what is derived is derived anew
    if place.endswith(".judgement.reason"):
        return []  # a text for people, with the peak of today's meaning in it
    return [] if old == new else [f"{place} was {old!r}, is {new!r}"]


def test_a_run_of_an_earlier_version_says_what_it_said(tmp_path: Path) -> None:
    old = json.loads(OLD_RUN.read_text(encoding="utf-8"))
    assert differences(old, shown(old, tmp_path)) == []


@pytest.mark.parametrize("command", ["show", "compare"])
def test_the_screens_take_a_run_of_an_earlier_version(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(OLD_RUN)] * (2 if command == "compare" else 1)
    assert run_command([command, *files]) == 0
    assert "balanced" in capsys.readouterr().out


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    """The old run with other times, bytes, names, warnings and peers."""
    rounds = draw(st.integers(1, 12))
    times = st.lists(TIMES_S, min_size=rounds, max_size=rounds)
    peers = [timed_peer("torch", draw(times)), refused_peer("jax", draw(WORDS))]
    run = saved_run(draw(times), draw(times), draw(st.permutations(peers)))
    run |= {"warnings": draw(st.lists(WORDS, max_size=3)), "partial": draw(st.booleans())}
    run["machine"] |= {"cpu": draw(st.none() | WORDS), "accelerator": None}
    run["seed"] = draw(st.integers(0, 2**63))
    for strategy in run["strategies"]:
        strategy["saved_bytes"], strategy["after_forward_bytes"] = draw(BYTES), draw(BYTES)
        strategy["ledger_peak_forward_bytes"] = draw(BYTES)
        strategy["recomputed_by_op"] = draw(BY_WORD)
        strategy["loss"] = draw(st.floats(allow_nan=False, allow_infinity=False))
    return run


GIVEN = ("warnings", "partial", "seed", "machine", "workload", "config", "stopped", "version")
OF_A_STRATEGY = ("strategy", "saved_bytes", "after_forward_bytes", "ledger_peak_forward_bytes")
OF_A_STRATEGY += ("recomputed_by_op", "loss", "grad_sha256", "passes", "trace", "peak_live")


@pytest.mark.slow
@given(runs())
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_was_written_is_what_is_read(tmp_path: Path, run: dict[str, Any]) -> None:
    before = copy.deepcopy(run)
    once = shown(run, tmp_path)
    assert {key: once[key] for key in GIVEN} == {key: before[key] for key in GIVEN}
    for old, new in zip(before["strategies"], once["strategies"]):
        told = {key: new[key] for key in OF_A_STRATEGY}
        assert differences({key: old[key] for key in OF_A_STRATEGY}, told) == []
    assert shown(once, tmp_path) == once
