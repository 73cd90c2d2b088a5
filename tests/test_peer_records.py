"""What was measured of PyTorch and JAX: in the record, on the screen, in the exports."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator

from ckptcli.measure.memory import held_alone
from ckptcli.measure.record_json import read_record, record_json, record_object
from ckptcli.measure.row import Agreement, Outcome
from ckptcli.report.console import render_run
from ckptcli.report.formats import registry
from ckptcli.report.screen import Screen
from tests.records import balanced_record, engine_row, none_record, run_record

VALIDATOR = Draft202012Validator(
    json.loads((files("ckptcli.measure") / "schema" / "run-1.json").read_text(encoding="utf-8"))
)

MEMORY = replace(held_alone(4096, 2), ledger_peak_backward_bytes=8192)
AGREEMENT = Agreement(211.5, 1e-7, 1.0, 2e-7, 3.0, 1e-5)
TORCH = engine_row(
    "torch",
    "none",
    times_s=[(0.04, 0.08, 0.12)] * 9,
    library="PyTorch 2.13.0",
    threads=2,
    memory=MEMORY,
    outcome=Outcome(211.5, 1234.5, None, {"matmul": 2}),
    agreement=AGREEMENT,
)
JAX = engine_row(
    "jax",
    "none",
    times_s=[(None, None, 0.08)] * 9,
    library="JAX 0.10.2",
    memory=held_alone(4096, 2, 1024),
    outcome=Outcome(211.5, 1234.5, None, {}),
    agreement=AGREEMENT,
    compile_s=0.25,
)
NONE = engine_row("torch", "balanced", "it decides op by op", library="PyTorch 2.13.0", threads=2)
RUN = run_record(none_record(), balanced_record(), TORCH, NONE, JAX)


def test_the_record_is_valid_and_read_back() -> None:
    data = record_object(RUN)
    VALIDATOR.validate(data)
    back = read_record(json.dumps(data), "text")
    assert back == RUN
    assert record_object(back) == data


def test_peers_are_rows_as_all_others_and_stand_once_more_where_older_readers_look() -> None:
    data = record_object(RUN)
    rows = [(entry["engine"], entry["strategy"]) for entry in data["strategies"]]
    assert rows == [
        *(("ckpt", "none"), ("ckpt", "balanced")),
        *(("torch", "none"), ("torch", "balanced"), ("jax", "none")),
    ]
    assert {frozenset(entry) for entry in data["strategies"]} == {frozenset(data["strategies"][0])}
    for row, peer in zip(data["strategies"][2:], data["peers"]):
        same = ("engine", "strategy", "library", "reason", "total_s", "agreement", "passes")
        assert {key: row[key] for key in same} == {key: peer[key] for key in same}
        assert row["peak_bytes"] == (peer["memory"] or {"peak_bytes": None})["peak_bytes"]


def test_a_file_from_when_peers_stood_apart_is_read() -> None:
    """Their entries had the total of each sample and no key `engine` among the strategies."""
    old = record_object(RUN)
    old["strategies"] = old["strategies"][:2]
    for entry in old["strategies"]:
        for key in ("engine", "library", "threads", "reason", "failed", "regions", "agreement"):
            del entry[key]
    for entry in old["peers"]:
        for sample in entry["passes"]["counted"]:
            del sample["whole_s"]
    back = read_record(json.dumps(old), "text")
    assert [row.key for row in back.rows] == [row.key for row in RUN.rows]
    for then, now in zip(back.rows, RUN.rows):
        figures = (then.times, then.ratios, then.own_ratio, then.agreement, then.peak_bytes)
        assert figures == (now.times, now.ratios, now.own_ratio, now.agreement, now.peak_bytes)


def test_a_record_without_peers_is_read() -> None:
    old = json.loads(record_json(run_record()))
    del old["peers"]
    assert read_record(json.dumps(old), "text") == run_record()


def test_a_distance_that_is_not_finite_is_null() -> None:
    far = replace(TORCH, agreement=replace(AGREEMENT, gradient_relative=math.inf))
    data = record_object(run_record(none_record(), far))
    VALIDATOR.validate(data)
    assert data["peers"][0]["agreement"]["gradient_relative"] is None
    back = read_record(json.dumps(data), "text").rows[1]
    assert back.agreement is not None
    assert not back.agreement.agrees
    assert back.is_wrong


def test_another_engine_is_compared_with_the_reference_and_with_its_own_strategy() -> None:
    _, _, torch, nothing, jax = RUN.rows
    assert torch.ratios is not None
    assert torch.ratios["total"].verdict == "slower"
    assert torch.own_ratio == torch.ratios["total"]
    assert jax.ratios is not None
    assert list(jax.ratios) == ["total"]
    assert jax.ratios["total"].verdict == "faster"
    assert (nothing.ratios, nothing.own_ratio, nothing.times) == (None, None, None)
    assert jax.median_s("forward") is None
    assert jax.median_s("total") == 0.08


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_screen_has_every_peer(width: int) -> None:
    text = render_run(RUN, Screen(width))
    assert "torch none (PyTorch 2.13.0, 2 threads)\n" in text
    assert "torch balanced: n/a: it decides op by op\n" in text
    assert "recomputes 2 matmul\n" in text
    assert "compiled in 250.00ms" in text
    table = [line for line in text.splitlines() if line.lstrip().startswith("jax none ")]
    (row,) = [line for line in table if "80.00ms" in line]
    assert len(row) <= width
    assert "0.80x" in row
    assert re.search(r"0\.80x\s+that of\s+ckpt's\s+none\s+\(faster\)", text)


@pytest.mark.parametrize("name", ["md", "html"])
def test_the_pages_have_every_peer(name: str) -> None:
    text = registry()[name]().render(RUN)
    assert isinstance(text, str)
    for word in ("torch balanced", "jax none", "it decides op by op", "agrees", "PyTorch 2.13.0"):
        assert word in text


def test_the_samples_of_a_peer_are_rows() -> None:
    text = registry()["csv"]().render(RUN)
    assert isinstance(text, str)
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["strategy"] == "jax none"]
    assert len(rows) == 9
    assert [(r["forward_s"], r["backward_s"], r["total_s"]) for r in rows[:1]] == [("", "", "0.08")]
