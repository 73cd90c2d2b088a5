"""A device that has not enough memory, simulated by a backend that refuses.

The silu network of 6 layers at n = 16 (1 KiB a tensor) has 7 KiB of parameters and input; its peak
is 18 tensors above that under `none` and 9 under `balanced`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from ckptcli import Plan, profile
from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.cli import devices
from ckptcli.cli.main import run_command
from ckptcli.measure.record_json import read_record, record_json
from ckptcli.measure.row import Row
from ckptcli.profiling.out_of_memory import PassOutOfMemory
from ckptcli.profiling.processes import merged
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import NEEDS_TORCH
from tests.records import engine_row
from tests.refusing_backend import RefusingBackend
from tests.wavering_backend import Wavering

KIB = 1024
LIMIT = 20 * KIB
NETWORK = SiluWorkload(6, 16)
PLAN = Plan(reps=2, warmup=1)


def numpy_backend() -> Backend:
    return RefusingBackend(open_backend(), LIMIT)


def torch_backend() -> Backend:
    import torch

    def refused() -> Exception:
        return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1024 bytes.")

    return RefusingBackend(open_backend("torch", "cpu"), LIMIT, refused)


def torch_host_backend() -> Backend:
    def refused() -> Exception:
        return RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")

    return RefusingBackend(open_backend("torch", "cpu"), LIMIT, refused)


BACKENDS = [
    numpy_backend,
    pytest.param(torch_backend, marks=[NEEDS_TORCH, pytest.mark.slow]),
    pytest.param(torch_host_backend, marks=[NEEDS_TORCH, pytest.mark.slow]),
]


@pytest.mark.parametrize("make", BACKENDS)
def test_the_others_still_run_and_the_live_list_is_kept(make: Callable[[], Backend]) -> None:
    backend = make()
    assert isinstance(backend, RefusingBackend)
    record = profile(NETWORK, ["none", "balanced"], backend=backend, plan=PLAN)
    assert [strategy.strategy for strategy in record.rows] == ["balanced"]
    assert record.rounds == 2
    (failure,) = record.failures
    assert (failure.strategy, failure.phase) == ("none", "forward")
    assert 18 * KIB <= failure.live.total_bytes <= LIMIT
    assert failure.live.bytes_by_why["input"] == 7 * KIB
    assert {"sigmoid", "matmul"} <= {tensor.op for tensor in failure.live.largest}
    assert backend.released == 1
    assert read_record(record_json(record), "it") == record


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("make", BACKENDS)
def test_a_pass_that_failed_leaves_nothing(make: Callable[[], Backend]) -> None:
    backend = make()
    assert isinstance(backend, RefusingBackend)
    with pytest.raises(PassOutOfMemory, match="none: out of memory in forward") as raised:
        profile(NETWORK, ["none"], backend=backend, plan=PLAN)
    assert backend.ledger.bytes_in_use == 0
    assert raised.value.failures[0].live.total_tensors > 10


def test_a_strategy_that_fails_only_when_timed_is_left_out() -> None:
    """In the last round: both networks are loaded then, which is 7 KiB more."""
    backend = RefusingBackend(open_backend(), 1 << 60, lambda: MemoryError("no more"))

    def limit(phase: str, done: int, total: int) -> None:
        del total
        if (phase, done) == ("timing", 1):
            backend.limit(LIMIT + 7 * KIB)

    record = profile(NETWORK, ["none", "balanced"], backend=backend, plan=PLAN, progress=limit)
    assert [strategy.strategy for strategy in record.rows] == ["balanced"]
    assert record.failures[0].phase == "a timed forward"
    assert (record.failures[0].message, record.rounds) == ("no more", 2)


def test_a_strategy_whose_bits_cannot_be_compared_is_left_out() -> None:
    """Of a library whose bits vary, `balanced` runs once more after its memory pass."""
    backend = RefusingBackend(Wavering(1e-6), 1 << 60)

    def limit(phase: str, done: int, total: int) -> None:
        del done, total
        backend.limit(LIMIT if phase == "difference" else 1 << 60)

    record = profile(NETWORK, ["none", "balanced"], backend=backend, plan=PLAN, progress=limit)
    assert [strategy.strategy for strategy in record.rows] == ["none"]
    assert len(record.rows[0].samples) == 2
    (failure,) = record.failures
    assert (failure.strategy, failure.phase) == ("balanced", "a run to compare its bits")


@pytest.fixture
def refusing_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "open_backend", lambda name, device: numpy_backend())


ARGUMENTS = ("--layers", "6", "--n", "16", "--reps", "2")


@pytest.mark.usefixtures("refusing_command")
def test_the_command_reports_and_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", *ARGUMENTS, "--json"]) == 1
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert [entry["strategy"] for entry in record["strategies"]] == ["balanced"]
    assert [entry["strategy"] for entry in record["failures"]] == ["none"]
    assert "Error: none: out of memory in forward: MemoryError" in captured.err
    assert "live at that moment: " in captured.err
    assert "1.0 KiB  input: node 0 [16, 16]" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.usefixtures("refusing_command")
def test_the_screen_shows_the_strategies_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", *ARGUMENTS]) == 1
    captured = capsys.readouterr()
    assert "checkpointing: Balanced" in captured.out
    assert "Disabled" not in captured.out
    assert "Error: none: out of memory in forward" in captured.err


def test_processes_of_which_one_ran_out_of_memory_are_merged() -> None:
    whole = profile(NETWORK, ["none", "balanced"], plan=PLAN)
    part = profile(NETWORK, ["none", "balanced"], backend=numpy_backend(), plan=PLAN)
    record = merged([whole, part])
    assert [strategy.strategy for strategy in record.rows] == ["balanced"]
    assert len(record.rows[0].samples) == 4
    assert [failure.strategy for failure in record.failures] == ["none"]


def peer(engine: str, strategy: str, reason: str | None = None) -> Row:
    total_s = {"none": 2.0, "remat": 3.0}[strategy]
    return engine_row(engine, strategy, reason, () if reason else [(None, None, total_s)] * 2)


@pytest.mark.parametrize("is_swapped", [False, True])
def test_peers_are_merged_by_engine_and_strategy(is_swapped: bool) -> None:
    run = profile(NETWORK, ["none", "remat"], plan=PLAN)
    others = [peer(engine, s) for engine in ("torch", "jax") for s in ("none", "remat")]
    whole = replace(run, rows=(*run.rows, *others))
    part = replace(run, rows=(*run.rows, peer("torch", "remat"), peer("jax", "remat", "no memory")))
    record = merged([part, whole] if is_swapped else [whole, part])
    *_, torch, jax = record.rows
    assert (torch.engine, torch.strategy, torch.seconds("total")) == ("torch", "remat", [3.0] * 4)
    assert [sample.process for sample in torch.samples] == [0, 0, 1, 1]
    assert (jax.engine, jax.strategy, jax.reason, jax.samples) == ("jax", "remat", "no memory", ())


@pytest.mark.usefixtures("refusing_command")
@pytest.mark.parametrize("command", ["run", "saved", "log", "check"])
def test_a_command_without_a_strategy_that_fits_exits_with_1(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ARGUMENTS if command == "run" else ARGUMENTS[:4]
    assert run_command([command, "-s", "none", *options]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "none: out of memory in" in captured.err
    assert "Traceback" not in captured.err
