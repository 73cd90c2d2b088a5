"""Verdicts of a saved run: every comparison that the run makes counts, those with peers too.

Of nine rounds the second smallest and the second largest cover a median at 96.1 %, the smallest and
the largest at 99.609 %. One comparison is taken at 95 %, for which the first pair suffices; two at
97.5 %, which needs the second; thirteen at 99.615 %, which no pair reaches.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from tests.saved_runs import refused_peer, saved_run, timed_peer

ROUNDS = 9
REFERENCE_S = [0.1] * ROUNDS
ONE_FASTER_S = [0.09, *[0.12] * (ROUNDS - 1)]
"""One of nine rounds speaks against: slower at 96.1 %, unclear at 99.609 %."""

ALL_SLOWER_S = [0.12] * ROUNDS


def verdicts(
    run: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """What `ckpt show` says of the times of `balanced`, by phase."""
    path = folder / "run.json"
    path.write_text(json.dumps(run))
    assert run_command(["show", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    balanced = shown["strategies"][1]
    assert balanced["strategy"] == "balanced"
    return {phase: ratio["verdict"] for phase, ratio in balanced["ratios"].items()}


@pytest.mark.parametrize(
    ("times_s", "peers", "verdict"),
    [
        (ONE_FASTER_S, [], "slower"),
        (ONE_FASTER_S, [timed_peer("torch", ALL_SLOWER_S)], "unclear"),
        (ONE_FASTER_S, [refused_peer("torch", "no program of it")], "slower"),
        (ALL_SLOWER_S, [timed_peer("torch", ALL_SLOWER_S)], "slower"),
        (ALL_SLOWER_S, [timed_peer(f"p{i}", ALL_SLOWER_S) for i in range(11)], "slower"),
        (ALL_SLOWER_S, [timed_peer(f"p{i}", ALL_SLOWER_S) for i in range(12)], "unclear"),
    ],
    ids=["alone", "a peer", "a peer without figures", "all slower", "twelve", "thirteen"],
)
def test_a_verdict_is_corrected_by_every_comparison_of_the_run(
    times_s: list[float],
    peers: list[dict[str, Any]],
    verdict: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = verdicts(saved_run(times_s, REFERENCE_S, peers), tmp_path, capsys)
    assert found == dict.fromkeys(("forward", "backward", "total"), verdict)
