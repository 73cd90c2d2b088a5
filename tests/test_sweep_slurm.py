"""`ckpt sweep --on slurm`: the same path through submitit's local executor; no Slurm is here."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.cli.sweep_tasks import sweep_plan
from ckptcli.errors import UsageError
from ckptcli.measure.record_json import read_record
from ckptcli.options.commands.sweep import SweepOptions
from ckptcli.options.listing import built
from ckptcli.sweep.engines.base import Request
from ckptcli.sweep.engines.slurm import SlurmEngine

ROOT = Path(__file__).parents[1]
WITHOUT = importlib.util.find_spec("submitit") is None
needs_submitit = pytest.mark.skipif(WITHOUT, reason="needs submitit: pip install '.[sweep]'")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, sys.path)]))


def test_without_submitit_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert run_command(["sweep", "-n", "8", "--on", "slurm", "--out", "s"]) == 2
    told = capsys.readouterr().err
    assert "--on slurm needs submitit, which is not installed" in told
    assert "pip install 'ckptcli[sweep]'" in told
    assert run_command(["sweep", "-n", "8", "--slurm", "partition=gpu"]) == 2
    assert "--slurm has no effect on --on local" in capsys.readouterr().err


@needs_submitit
@pytest.mark.slow
def test_what_slurm_needs_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert run_command(["sweep", "-n", "8", "--on", "slurm", "--out", "s"]) == 2
    assert "finds no Slurm" in capsys.readouterr().err
    with pytest.raises(UsageError, match="needs a folder that its nodes share"):
        SlurmEngine(Request(True), cluster="local")
    with pytest.raises(UsageError, match="does not take"):
        SlurmEngine(Request(True, folder=tmp_path, parameters={"time-of-day": "3"}), "local")


@needs_submitit
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_jobs_give_the_records_of_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = built(SweepOptions, {"n": "8,16", "layers": 2, "memory_only": True})
    tasks = sweep_plan(options).tasks
    engine = SlurmEngine(Request(True, 30.0, folder=tmp_path), cluster="local", poll_s=0.1)
    found = {task.key: outcome for task, outcome in engine.outcomes(tasks)}
    assert run_command(["sweep", "-n", "8,16", "-l", "2", "--memory-only", "--json"]) == 0
    points = {p["key"]: p for p in json.loads(capsys.readouterr().out)["points"]}
    for task in tasks:
        text = found[task.key].text
        assert text is not None, found[task.key].reason
        rows = read_record(text, "a job's").rows
        assert [r.peak_bytes for r in rows] == [r["peak_bytes"] for r in points[task.key]["rows"]]


@needs_submitit
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_job_that_leaves_no_result_failed(tmp_path: Path) -> None:
    options = built(SweepOptions, {"n": 8, "layers": 2, "memory_only": True})
    (task,) = sweep_plan(options).tasks
    engine = SlurmEngine(Request(True, folder=tmp_path), cluster="local", poll_s=0.1)
    gone = type(task)(task.key, task.point, task.words, str(tmp_path / "gone"))
    ((_, outcome),) = engine.outcomes([gone])
    assert outcome.text is None
    assert outcome.reason is not None
    assert "left no result: FileNotFoundError: " in outcome.reason
    assert "\n" not in outcome.reason
