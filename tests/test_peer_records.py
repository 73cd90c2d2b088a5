"""What was measured of PyTorch and JAX: in the record, on the screen, in the exports."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator

from ckptcli.measure.peer_record import Agreement, PeerMemory, PeerRecord, PeerSample
from ckptcli.measure.record_json import read_record, record_json, record_object
from ckptcli.measure.record_types import first_mismatch
from ckptcli.report.console import Screen, render_run
from ckptcli.report.formats import registry
from tests.records import balanced_record, none_record, run_record

VALIDATOR = Draft202012Validator(
    json.loads((files("ckptcli.measure") / "schema" / "run-1.json").read_text(encoding="utf-8"))
)

MEMORY = PeerMemory(4096, 2, 8192, None)
AGREEMENT = Agreement(211.5, 1e-7, 1.0, 2e-7, 3.0, 1e-5)
TORCH = PeerRecord(
    "torch",
    "none",
    "PyTorch 2.13.0",
    threads=2,
    memory=MEMORY,
    recomputed_by_op={"matmul": 2},
    agreement=AGREEMENT,
    warmup=(PeerSample(0.1, 0.2, 0.3),),
    samples=tuple(PeerSample(0.04, 0.08, 0.12, process=i) for i in range(9)),
)
JAX = PeerRecord(
    "jax",
    "none",
    "JAX 0.10.2",
    memory=replace(MEMORY, peak_bytes=None, compiled_temp_bytes=1024),
    recomputed_by_op={},
    agreement=AGREEMENT,
    compile_s=0.25,
    samples=tuple(PeerSample(None, None, 0.08) for _ in range(9)),
)
NONE = PeerRecord("torch", "balanced", "PyTorch 2.13.0", threads=2, reason="it decides op by op")
RUN = run_record(none_record(), balanced_record(), peers=(TORCH, NONE, JAX))


def test_the_record_is_valid_and_read_back() -> None:
    data = record_object(RUN)
    VALIDATOR.validate(data)
    back = read_record(json.dumps(data), "text")
    assert back == RUN
    assert first_mismatch(back) is None


def test_a_record_without_peers_is_read() -> None:
    old = json.loads(record_json(run_record()))
    del old["peers"]
    assert read_record(json.dumps(old), "text") == run_record()


def test_a_distance_that_is_not_finite_is_null() -> None:
    far = replace(TORCH, agreement=replace(AGREEMENT, gradient_relative=math.inf))
    data = record_object(run_record(peers=(far,)))
    VALIDATOR.validate(data)
    assert data["peers"][0]["agreement"]["gradient_relative"] is None
    back = read_record(json.dumps(data), "text").peers[0].agreement
    assert back is not None
    assert not back.agrees


def test_a_peer_is_compared_with_the_reference_and_with_its_own_strategy() -> None:
    torch, nothing, jax = RUN.peers
    assert torch.ratio is not None
    assert torch.ratio.verdict == "slower"
    assert torch.own_ratio == torch.ratio
    assert jax.ratio is not None
    assert jax.ratio.verdict == "faster"
    assert (nothing.ratio, nothing.own_ratio, nothing.times) == (None, None, None)
    assert jax.median_s("forward") is None
    assert jax.median_s("total") == 0.08


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_screen_has_every_peer(width: int) -> None:
    text = render_run(RUN, Screen(width))
    assert "torch none (PyTorch 2.13.0, 2 threads)\n  recomputes 2 matmul\n" in text
    assert "torch balanced (PyTorch 2.13.0, 2 threads)\n  n/a: it decides op by op\n" in text
    assert "jax none (JAX 0.10.2)\n  recomputes nothing\n" in text
    assert "compiled in 250.00ms" in text
    table = text.partition("live bytes")[0].splitlines()[-8:]
    assert all(len(line) <= width for line in table)
    (row,) = [line for line in table if line.lstrip().startswith("jax none")]
    assert "80.00ms" in row
    assert "faster" in row


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
