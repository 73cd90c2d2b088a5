"""What a compiled program takes: the word on it, its figures in every report, and XLA's own."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.compiled import Compiled, Plan
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record, record_json, record_object
from ckptcli.measure.row import Judgement
from ckptcli.peers.base import NoPeer, Packed, PeerNetwork, open_engines, regions_of
from ckptcli.peers.jax_hlo import recomputed_by_op
from ckptcli.profiling.fresh_process import in_fresh_process
from ckptcli.report.console import render_run
from ckptcli.report.formats import registry
from ckptcli.report.screen import Screen
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import NEEDS_JAX
from tests.records import TENSOR, compiled_row, none_record, run_record
from tests.test_schema import check as check_schema

pytestmark = pytest.mark.fresh_process

ASKED = {"dot_general": 2, "logistic": 2}


def run(residual_bytes: int, temp_bytes: int, left: dict[str, int] | None = None) -> RunRecord:
    """ckpt's `none`, JAX's with 7 tensors of residuals and 6 of temporaries, JAX's `remat`."""
    return run_record(
        none_record(),
        compiled_row("none", 7 * TENSOR, 6 * TENSOR, {}, {}),
        compiled_row("remat", residual_bytes, temp_bytes, ASKED, ASKED if left is None else left),
    )


RUN = run(TENSOR, 6 * TENSOR)


def judgement(record: RunRecord) -> Judgement:
    found = record.rows[-1].judgement
    assert found is not None
    return found


# The word.


def test_the_peak_is_the_plan_whole_and_what_is_shared_counts_once() -> None:
    assert Plan(100, 50, 1000).whole_bytes == 1150
    assert Plan(100, 50, 1000, alias_bytes=50).whole_bytes == 1100
    assert Compiled(Plan(100, 50, 1000)).peak_bytes == 1150
    assert Compiled(Plan(100, 50, 1000), device_peak_bytes=900).peak_bytes == 900
    assert Compiled(None).peak_bytes is None
    assert RUN.rows[1].peak_bytes == (3 + 2 + 6) * TENSOR + 4


@pytest.mark.parametrize(
    ("residuals", "temporaries", "word"),
    [
        (TENSOR, 3 * TENSOR, "effective"),
        (9 * TENSOR, 3 * TENSOR, "effective"),  # whatever was traced: what it takes is less
        (TENSOR, 6 * TENSOR, "no effect"),
        (7 * TENSOR, 6 * TENSOR, "no effect"),
        (TENSOR, 7 * TENSOR, "worse"),
    ],
)
def test_the_word_is_about_what_the_program_takes(
    residuals: int, temporaries: int, word: str
) -> None:
    assert judgement(run(residuals, temporaries)).word == word


def test_residuals_that_fall_where_the_plan_does_not_are_a_sentence() -> None:
    reason = judgement(RUN).reason
    assert reason.startswith(
        "the compiled program takes the same 44.0 MiB, although its residuals, as traced, are "
        "4.0 MiB instead of 28.0 MiB (-86 %): all of it is computed again "
        "(2 dot_general, 2 logistic), but "
    )
    merged = judgement(run(TENSOR, 6 * TENSOR, {"dot_general": 1, "logistic": 2})).reason
    assert merged.endswith(
        "of 2 dot_general, 2 logistic to be computed again the compiler merged 1 dot_general with "
        "those of the forward pass, whose values are then held"
    )
    assert "although" not in judgement(run(7 * TENSOR, 6 * TENSOR)).reason


def test_a_wrong_gradient_comes_first() -> None:
    row = RUN.rows[-1]
    assert row.agreement is not None
    wrong = replace(row, agreement=replace(row.agreement, gradient_relative=1.0))
    found = judgement(run_record(*RUN.rows[:2], wrong))
    assert found.word == "wrong"
    assert found.reason.startswith("loss or gradients differ from ckpt's")
    assert found.reason.endswith(f"; {judgement(RUN).reason}")


# Reports.


def test_the_record_is_valid_and_read_back() -> None:
    data = record_object(RUN)
    check_schema(data)
    assert read_record(record_json(RUN), "text") == RUN
    row = data["strategies"][1]
    assert row["compiled"]["plan"]["whole_bytes"] == row["peak_bytes"] == row["compiled_peak_bytes"]
    assert row["process_peak_bytes"] == row["compiled"]["fresh_process_bytes"]
    assert data["strategies"][0]["compiled"] is None


def test_a_record_from_before_is_read() -> None:
    data = json.loads(record_json(RUN))
    for row in data["strategies"]:
        for key in ("compiled", "compiled_peak_bytes"):
            del row[key]
    assert read_record(json.dumps(data), "text").rows[1].peak_bytes is None


def test_the_screen_has_the_table_and_the_sentences() -> None:
    text = render_run(RUN, Screen(200))
    (line,) = [
        line for line in text.splitlines() if line.startswith("jax remat") and "250.00ms" in line
    ]
    for figure in ("4.0 MiB", "24.0 MiB", "44.0 MiB", "36.0 MiB", "2.5 G", "750.00ms", "200.00ms"):
        assert figure in line
    flat = " ".join(text.split())
    assert "planned 44.0 MiB: arguments 12.0 MiB, output 8.0 MiB, temporaries 24.0 MiB" in flat
    assert "a process of its own rose by 36.0 MiB while it ran the program once" in flat
    assert "does so with 2 dot_general, 2 logistic" in flat
    assert "lowered in 250.00ms, compiled in 750.00ms, first call 200.00ms" in flat


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_table_fits_a_screen(width: int) -> None:
    lines = render_run(RUN, Screen(width)).splitlines()
    (head,) = [i for i, line in enumerate(lines) if line.startswith("compiled ")]
    assert all(len(line) <= width for line in lines[head : head + 4])
    assert "44.0 MiB" in lines[head + 2]


@pytest.mark.parametrize("name", ["md", "html"])
def test_the_pages_have_it(name: str) -> None:
    text = registry()[name]().render(RUN)
    assert isinstance(text, str)
    for word in ("temporaries", "asked again", "first call", "44.0 MiB", "24.0 MiB"):
        assert word in text


def test_the_samples_have_it() -> None:
    text = registry()["csv"]().render(RUN)
    assert isinstance(text, str)
    rows = list(csv.DictReader(io.StringIO(text)))
    (own, *_), (jax, *_) = (
        [row for row in rows if row["strategy"] == name] for name in ("none", "jax remat")
    )
    keys = ("compiled_peak_bytes", "lower_s", "build_s", "first_call_s")
    assert [own[key] for key in keys] == [""] * 4
    assert [jax[key] for key in keys] == [str(11 * TENSOR + 4), "0.25", "0.75", "0.2"]


def test_why_there_is_no_process_is_told() -> None:
    row = RUN.rows[-1]
    assert row.compiled is not None
    alone = replace(row.compiled, fresh_process_bytes=None, why_no_process="it cannot be moved")
    text = render_run(run_record(*RUN.rows[:2], replace(row, compiled=alone)), Screen(120))
    assert "in a process of its own: n/a, it cannot be moved" in text


# The fresh process.


class _Network:
    """A network that hands out what another process is to run."""

    def __init__(self, packed: Packed | Exception | None) -> None:
        self._packed = packed

    def packed(self) -> Packed | None:
        if isinstance(self._packed, Exception):
            raise self._packed
        return self._packed


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (None, None),
        (NoPeer("JAX cannot move it"), "JAX cannot move it"),
        (Packed("ckptcli.no_such_module", b""), "ended with 1: ModuleNotFoundError"),
    ],
)
def test_whatever_becomes_of_the_child_the_row_stays(
    packed: Packed | Exception | None, why: str | None
) -> None:
    network: Any = _Network(packed)
    found = in_fresh_process(network, Compiled(Plan(1, 1, 1)))
    assert found.fresh_process_bytes is None
    assert found.plan == Plan(1, 1, 1)
    assert why is None if found.why_no_process is None else str(why) in found.why_no_process


def test_what_does_not_fit_beside_this_process_is_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ckptcli.profiling.fresh_process.available_bytes", lambda: 10 * 2**20)
    network: Any = _Network(Packed("ckptcli.no_such_module", b""))
    found = in_fresh_process(network, Compiled(Plan(2 * 2**20, 2**20, 4 * 2**20)))
    assert found.why_no_process == (
        "a second process would need 13.0 MiB, and 10.0 MiB of memory are free"
    )


# XLA's text.

HLO = (Path(__file__).parent / "data" / "recomputation.hlo").read_text(encoding="utf-8")
"""Written by hand, in the form of both texts: shared functions, a fusion, a library's call."""


def test_what_is_computed_again_is_counted_through_calls() -> None:
    """A shared function is what its call is; a fusion's instructions are what each one is."""
    assert recomputed_by_op(HLO) == {"dot_general": 1, "exp": 1, "svd": 2}
    assert recomputed_by_op("") == {}


def network(workload: SiluWorkload, strategy: str) -> PeerNetwork:
    (engine,) = open_engines(["jax"])
    return engine.network(workload, regions_of(parse(strategy), workload.layers))


def parse(strategy: str) -> Any:
    from ckptcli.checkpoint.strategies.registry import parse_strategy

    return parse_strategy(strategy)


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "products", "left"),
    [("none", 0, 0), ("remat", 6, 1), ("remat:every=6", 6, 6), ("balanced", 0, 0)],
)
def test_what_xla_left_of_six_layers(strategy: str, products: int, left: int) -> None:
    """Five of six products of `remat` are the forward's, and XLA takes those; at n = 16 all six."""
    found = network(SiluWorkload(6, 64), strategy).measure().compiled
    assert found is not None
    assert found.asked_by_op is not None
    assert found.left_by_op is not None
    assert found.asked_by_op.get("dot_general", 0) == products
    assert found.left_by_op.get("dot_general", 0) == left
    assert found.merged_by_op.get("dot_general", 0) == products - left


@NEEDS_JAX
@pytest.mark.slow
def test_the_plan_and_the_process_of_a_real_program() -> None:
    """Eight layers of n = 512: 8 weights and the input of 1 MiB go in, 8 gradients come out."""
    peer = network(SiluWorkload(8, 512), "none")
    measured = peer.measure()
    found, tensor = measured.compiled, 512 * 512 * 4
    assert found is not None
    assert found.plan is not None
    assert found.plan.argument_bytes == 9 * tensor
    assert 0 <= found.plan.output_bytes - 8 * tensor < 1024
    assert found.plan.temp_bytes >= 8 * tensor
    assert measured.memory.peak_bytes == found.peak_bytes == found.plan.whole_bytes
    seconds = (found.lower_s, found.build_s, found.first_call_s)
    assert all(time_s is not None and time_s > 0.0 for time_s in seconds)
    assert measured.compile_s == pytest.approx(sum(seconds[:2]))  # type: ignore[arg-type]
    assert found.flops is not None
    assert found.flops >= 2 * 512**3 * (3 * 8 - 1)
    fresh = in_fresh_process(peer, found)
    assert fresh.why_no_process is None
    assert fresh.device_peak_bytes is None  # a processor keeps no account
    rise = fresh.fresh_process_bytes
    if rise is not None:  # where the system tells
        made = found.plan.output_bytes + found.plan.temp_bytes
        assert 0.9 * made < rise < made + 64 * 2**20


@NEEDS_JAX
@pytest.mark.slow
def test_a_program_of_library_calls_in_a_fresh_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """LAPACK's functions are looked up in the child too."""
    words = ["run", "--workload", "trg", "--steps", "4", "-s", "none", "-s", "remat"]
    code = run_command([*words, "--engine", "jax", "--reps", "1", "--json", "-q"])
    data = json.loads(capsys.readouterr().out)
    check_schema(data)
    assert code in (0, 5)
    for row in data["strategies"][2:]:
        assert row["compiled"]["why_no_process"] is None
        assert row["process_peak_bytes"] == row["compiled"]["fresh_process_bytes"]
        assert row["peak_bytes"] == row["compiled"]["plan"]["whole_bytes"]
    remat = data["strategies"][3]["compiled"]
    assert remat["asked_by_op"] == remat["left_by_op"] == {"dot_general": 8, "svd": 8}
    assert data["strategies"][0]["compiled"] is None


@NEEDS_JAX
@pytest.mark.slow
def test_op_by_op_nothing_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "-l", "2", "-n", "8", "-s", "none", "--engine", "jax-eager", "--reps", "1"]
    assert run_command([*words, "--json", "-q"]) == 0
    row = json.loads(capsys.readouterr().out)["strategies"][1]
    assert (row["compiled"], row["peak_bytes"]) == (None, None)


class _Program:
    """Any loss of two matrices of ones, as an engine gets it."""

    tolerance = 1e-5
    x = None

    def __init__(self, loss: Any, side: int = 4) -> None:
        self.parameters = [np.ones((side, side), np.float32) for _ in range(2)]
        self._loss = loss

    def loss(self, parameters: Any, x: Any) -> Any:
        return self._loss(parameters)

    def recomputed(self, backward_calls: Any) -> dict[str, int]:
        return {}


def facts_of(loss: Any, side: int = 4) -> Compiled:
    from ckptcli.peers.jax_engine import CompiledJaxNetwork

    peer = CompiledJaxNetwork(_Program(loss, side))
    found = peer.measure().compiled
    assert found is not None
    return in_fresh_process(peer, found)


@NEEDS_JAX
@pytest.mark.slow
def test_any_program_has_all_of_it() -> None:
    """With a parameter that is never used, a loop with a checkpoint, calls of LAPACK and an FFT."""
    import jax
    import jax.numpy as jnp

    def looped(parameters: Any) -> Any:
        body = jax.checkpoint(lambda h, w: jnp.tanh(h @ w))
        stacked = jnp.stack(parameters)
        h, _ = jax.lax.scan(lambda h, w: (body(h, w), None), parameters[0], stacked)
        return h.sum()

    def called(parameters: Any) -> Any:
        square = parameters[0] + 4.0 * jnp.eye(4)
        return jnp.linalg.cholesky(square @ square.T).sum() + jnp.abs(jnp.fft.fft(square)).sum()

    for loss in (lambda parameters: (parameters[0] ** 2).sum(), looped, called):
        found = facts_of(loss)
        assert found.why_no_process is None
        assert found.plan is not None
        assert found.flops is not None
    again = {"dot_general": 2, "tanh": 2}  # once a turn of the loop
    assert (facts_of(looped).asked_by_op, facts_of(looped).left_by_op) == (again, again)


@NEEDS_JAX
@pytest.mark.slow
def test_a_program_that_calls_python_has_no_process_and_says_so() -> None:
    import jax

    def loss(parameters: Any) -> Any:
        shape = jax.ShapeDtypeStruct((4, 4), np.float32)
        held = jax.pure_callback(np.asarray, shape, jax.lax.stop_gradient(parameters[0]))
        return (parameters[0] * held).sum()

    found = facts_of(loss)
    assert found.fresh_process_bytes is None
    assert "cannot move the program to another process" in str(found.why_no_process)
    assert found.plan is not None


@pytest.mark.long
@NEEDS_JAX
@pytest.mark.slow
def test_the_trg_is_no_smaller_since_xla_computes_again_early() -> None:
    """docs/jax.md: nothing is merged; a scheduler for memory finds the room."""

    def plans(flags: str) -> list[int]:
        words = ["run", "--workload", "trg", "--steps", "6", "-s", "none", "-s", "remat"]
        done = subprocess.run(
            [sys.executable, "-m", "ckptcli", *words, "--engine", "jax", "--reps", "1", "--json"],
            capture_output=True,
            text=True,
            env={**os.environ, "XLA_FLAGS": flags},
        )
        assert done.returncode in (0, 5), done.stderr
        rows = [row for row in json.loads(done.stdout)["strategies"] if row["engine"] == "jax"]
        compiled = rows[1]["compiled"]
        assert compiled["asked_by_op"] == compiled["left_by_op"] == {"dot_general": 12, "svd": 12}
        assert rows[1]["saved_bytes"] < 0.2 * rows[0]["saved_bytes"]
        return [row["peak_bytes"] for row in rows]

    none, remat = plans("")
    assert remat > 0.98 * none
    none, remat = plans("--xla_cpu_enable_concurrency_optimized_scheduler=false")
    assert remat < 0.95 * none
