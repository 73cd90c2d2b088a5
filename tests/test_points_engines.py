"""Runs of several programs in other libraries too: rows at each point, networks let go of."""

from __future__ import annotations

import json
import weakref

import pytest

from ckptcli.cli.main import run_command
from ckptcli.profiling.points import profile_points
from ckptcli.profiling.profile import silent
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import NEEDS_JAX, NEEDS_TORCH
from tests.points_kit import LAYERS, planned, surroundings


@pytest.mark.long
@NEEDS_TORCH
@NEEDS_JAX
@pytest.mark.slow
def test_so_are_networks_of_other_libraries() -> None:
    from ckptcli.cli.engines import opened_engines

    opened: list[weakref.ref[Workload]] = []

    def open(layers: int) -> Workload:
        assert [of() for of in opened] == [None] * len(opened)
        workload = SiluWorkload(layers, 8)
        opened.append(weakref.ref(workload))
        return workload

    with opened_engines(("torch", "jax"), None) as (known, _):
        record = profile_points(planned(open), surroundings(engines=known), silent)
    assert len(record.rows) == len(LAYERS) * 6
    assert all(row.agreement.agrees for row in record.rows if row.agreement is not None)


@NEEDS_TORCH
@pytest.mark.slow
def test_other_engines_have_rows_at_each_point(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-l", "1,2", "-n", "8", "--reps", "2", "-s", "remat", "--engine", "torch", "--json")
    assert run_command(["run", *words]) == 0
    out = capsys.readouterr().out
    rows = [(r["engine"], r["strategy"], r["point"]) for r in json.loads(out)["strategies"]]
    assert rows == [
        (engine, strategy, {"layers": layers})
        for layers in (1, 2)
        for engine in ("ckpt", "torch")
        for strategy in ("none", "remat")
    ]
