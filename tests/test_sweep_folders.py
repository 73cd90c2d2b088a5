"""Folders of sweeps where a record is taken: compared, shown, and told apart from what is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import record_json
from ckptcli.measure.rounds import Plan
from ckptcli.profiling.profile import profile
from ckptcli.sweep.folder_record import records_in
from ckptcli.sweep.result import PointResult
from ckptcli.sweep.running import once
from ckptcli.workloads.silu import SiluWorkload


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def measured(layers: int, n: int, dtype: str = "float32") -> RunRecord:
    workload = SiluWorkload(layers, n, dtype=dtype)
    config = {"layers": layers, "n": n, "batch": None, "dtype": dtype, "memory_only": True}
    return profile(workload, plan=Plan(reps=0, warmup=0), config=config)


def folder(name: str, *records: RunRecord) -> Path:
    points = Path(name, "points")
    points.mkdir(parents=True)
    for position, record in enumerate(records):
        (points / f"{position}.json").write_text(record_json(record))
    return Path(name)


def test_the_points_of_a_folder_are_one_record() -> None:
    found = records_in(folder("s", *(measured(k, n) for k in (2, 3) for n in (16, 8))))
    (record,) = found.values()
    assert list(found) == [""]
    points = [dict(program.point) for program in record.programs]
    assert points == [{"layers": k, "n": n} for k in (2, 3) for n in (8, 16)]
    assert record.title == "layers = 2,3, n = 8,16"


def test_warnings_that_differ_in_figures_are_told_once() -> None:
    told = [("the load is 3.1", "one"), ("the load is 4.5",), ("the load is 1,024", "two")]
    points = [
        PointResult(str(n), {"n": n}, replace(measured(2, 8), warnings=texts))
        for n, texts in enumerate(told)
    ]
    assert list(once(points)) == ["n=0: the load is 3.1 (and 2 alike)", "n=0: one", "n=2: two"]


def test_points_of_two_dtypes_are_two_records() -> None:
    records = [measured(2, n, dtype) for n in (8, 16) for dtype in ("float64", "float32")]
    assert list(records_in(folder("s", *records))) == ["dtype = float32", "dtype = float64"]


def test_sweeps_are_compared_point_by_point(capsys: pytest.CaptureFixture[str]) -> None:
    folder("before", measured(2, 8), measured(2, 16))
    folder("after", measured(2, 16), measured(2, 24))
    assert run_command(["compare", "before", "after", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert '"point": {"n": 16}' in json.dumps(found)
    assert run_command(["compare", "before", "after"]) == 0
    screen = capsys.readouterr().out
    assert "only in the base: n=8 none, n=8 balanced" in screen
    assert "only in the new run: n=24 none" in screen


def test_dtypes_are_compared_each_with_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    folder("before", measured(2, 8), measured(2, 8, "float64"))
    folder("after", measured(2, 8, "float64"), measured(2, 8))
    assert run_command(["compare", "before", "after"]) == 0
    screen = capsys.readouterr().out
    assert screen.index("after, dtype = float32") < screen.index("after, dtype = float64")
    folder("other", measured(2, 8))
    assert run_command(["compare", "before", "other"]) == 2
    assert "no point is in both" in capsys.readouterr().err
    assert run_command(["show", "before"]) == 2
    assert "has points of several kinds" in capsys.readouterr().err


def test_a_folder_is_shown_as_a_run_of_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    folder("s", measured(2, 8), measured(2, 16))
    assert run_command(["show", "s", "-q"]) == 0
    assert "n=16 balanced: " in capsys.readouterr().out


def test_what_is_no_folder_of_a_sweep_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert run_command(["show", "empty"]) == 2
    assert "is no folder of a sweep" in capsys.readouterr().err
    folder("none")
    assert run_command(["show", "none"]) == 2
    assert "has no point that was measured" in capsys.readouterr().err
    folder("twice", measured(2, 8), measured(2, 8))
    assert run_command(["show", "twice"]) == 2
    assert "has two records of one point" in capsys.readouterr().err
    (folder("wrong", measured(2, 8)) / "points" / "1.json").write_text("{")
    assert run_command(["compare", "wrong", "wrong"]) == 2
    assert "is not JSON" in capsys.readouterr().err
