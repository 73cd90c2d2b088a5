"""Saved runs as files: an old one of `tests/data`, with other figures in it.

The file is what a run of an earlier version wrote. Only keys that every version reads are changed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from tests.helpers import DATA

OLD_RUN = DATA / "run_before_devices.json"


def saved_run(
    own: Sequence[float], reference: Sequence[float], peers: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """A run of `none`, whose rounds took `reference`, and of `balanced`, whose took `own`."""
    run: dict[str, Any] = json.loads(OLD_RUN.read_text())
    for strategy, times_s in zip(run["strategies"], (reference, own), strict=True):
        (sample, *_) = strategy["passes"]["counted"]
        strategy["passes"]["counted"] = [
            {**sample, "forward_s": 0.4 * time_s, "backward_s": 0.6 * time_s} for time_s in times_s
        ]
    run["rounds"] = len(own)
    if peers:
        run["peers"] = list(peers)
    return copy.deepcopy(run)


def timed_peer(engine: str, times_s: Sequence[float]) -> dict[str, Any]:
    """An entry of `peers` with figures."""
    samples = [{"forward_s": None, "backward_s": None, "total_s": time_s} for time_s in times_s]
    agreement = {"loss": 1.0, "loss_relative": 0.0, "loss_ulp": 0.0}
    agreement |= {"gradient_relative": 0.0, "gradient_ulp": 0.0, "tolerance": 1e-5}
    memory = {"saved_bytes": 512, "saved_tensors": 2, "peak_bytes": None}
    return {
        **refused_peer(engine, ""),
        "reason": None,
        "memory": {**memory, "compiled_temp_bytes": None},
        "recomputed_by_op": {},
        "agreement": {**agreement, "agrees": True},
        "passes": {"warmup": [], "counted": samples},
    }


def refused_peer(engine: str, reason: str) -> dict[str, Any]:
    """An entry of `peers` without figures."""
    return {
        "engine": engine,
        "strategy": "none",
        "library": f"{engine.title()} 1.0",
        "threads": None,
        "reason": reason,
        "memory": None,
        "recomputed_by_op": None,
        "agreement": None,
        "compile_s": None,
        "passes": {"warmup": [], "counted": []},
    }
