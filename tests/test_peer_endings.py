"""What ends a part of a run with peers early: too little memory, theirs or ours, and Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ckptcli import Plan, profile
from ckptcli.backends import open_backend
from ckptcli.cli.main import run_command
from ckptcli.measure import OURS
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record, record_json
from ckptcli.measure.row import Row
from ckptcli.peers.base import open_engines
from ckptcli.workloads.silu import SiluWorkload
from ckptcli.workloads.trg import TrgWorkload
from tests.backend_kit import NEEDS_JAX, NEEDS_TORCH
from tests.refusing_backend import RefusingBackend

KIB = 1024
LIMIT = 20 * KIB
"""Enough for `remat` and `balanced` of the network, too little for `none`."""

NETWORK = SiluWorkload(6, 16)
PLAN = Plan(reps=2, warmup=1)
ARGUMENTS = ("-l", "6", "-n", "16", "--reps", "2", "-s", "none", "-s", "remat", "--json", "-q")


def too_much_for_torch() -> None:
    import torch

    torch.empty(1 << 50)


def too_much_for_jax() -> None:
    import jax

    jax.numpy.ones((1 << 42,)).block_until_ready()


def too_much_for_numpy() -> None:
    raise MemoryError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "allocate"),
    [
        pytest.param("torch", too_much_for_torch, marks=NEEDS_TORCH),
        pytest.param("torch", too_much_for_numpy, marks=NEEDS_TORCH),
        pytest.param("jax", too_much_for_jax, marks=NEEDS_JAX),
        pytest.param("jax-eager", too_much_for_numpy, marks=NEEDS_JAX),
    ],
)
def test_an_engine_knows_its_librarys_errors(engine: str, allocate: Callable[[], None]) -> None:
    (opened,) = open_engines([engine])
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        allocate()
    assert opened.is_out_of_memory(caught.value)
    assert not opened.is_out_of_memory(RuntimeError("INTERNAL: something else"))
    assert not opened.is_out_of_memory(ValueError("RESOURCE_EXHAUSTED"))


def peers_of(record: RunRecord) -> list[Row]:
    """The rows of other engines."""
    return [row for row in record.rows if row.engine != OURS]


def failing_from(call: int, allocate: Callable[[], None], inner: Any) -> Any:
    """A method that asks for too much memory from the `call`-th call on, of any object."""
    calls = 0

    def method(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= call:
            allocate()
        return inner(self, *arguments)

    return method


@pytest.mark.slow
@NEEDS_TORCH
@NEEDS_JAX
@pytest.mark.parametrize(
    ("call", "phase"), [(1, "its memory pass"), (7, "a timed forward")], ids=["memory", "timed"]
)
@pytest.mark.parametrize("failing", ["torch", "jax"])
def test_a_library_without_memory_is_a_row_and_the_others_run(
    failing: str,
    call: int,
    phase: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two strategies take three passes each before the rounds begin."""
    from ckptcli.peers.jax_engine import CompiledJaxNetwork
    from ckptcli.peers.torch_engine import TorchNetwork

    if failing == "torch":
        method = failing_from(call, too_much_for_torch, TorchNetwork.forward)
        monkeypatch.setattr(TorchNetwork, "forward", method)
    else:
        call = {1: 1, 7: 5}[call]  # tracing runs no program, a fresh process another one
        method = failing_from(call, too_much_for_jax, CompiledJaxNetwork.forward)
        monkeypatch.setattr(CompiledJaxNetwork, "forward", method)
    assert run_command(["run", *ARGUMENTS, "--engine", "torch", "--engine", "jax"]) == 1
    captured = capsys.readouterr()
    record = read_record(captured.out, "stdout")
    assert [len(row.samples) for row in record.rows if row.engine == OURS] == [2, 2]
    for peer in peers_of(record):
        if peer.engine != failing:
            assert (peer.reason, len(peer.samples)) == (None, 2)
            continue
        assert (peer.reason or "").startswith(f"out of memory in {phase}: ")
        assert (peer.memory, peer.agreement, peer.samples) == (None, None, ())
        assert f"Error: {peer.name}: out of memory in {phase}: " in captured.err
    names = [f"{failing} none", f"{failing} remat"]
    assert sorted(failure.strategy for failure in record.failures) == names
    assert "Traceback" not in captured.err


@pytest.mark.slow
@NEEDS_TORCH
def test_any_other_error_of_a_library_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    from ckptcli.peers.torch_engine import TorchNetwork

    def broken(self: TorchNetwork) -> Any:
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(TorchNetwork, "forward", broken)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        profile(NETWORK, ["none"], engines=open_engines(["torch"]), plan=PLAN)


class Limited(RefusingBackend):
    """NumPy, whose limit changes with the phase of the profile; None is no limit."""

    def __init__(self, limits: dict[str, int]) -> None:
        self.limits = limits
        super().__init__(open_backend(), limits.get("memory", 1 << 60))

    def progress(self, phase: str, done: int, total: int) -> None:
        del done, total
        self.limit(self.limits.get(phase, 1 << 60))


def limited_profile(
    limits: dict[str, int], strategies: Sequence[str], engines: Sequence[str] = ()
) -> RunRecord:
    backend = Limited(limits)
    return profile(
        NETWORK,
        strategies,
        backend=backend,
        engines=open_engines(engines),
        plan=PLAN,
        progress=backend.progress,
    )


@pytest.mark.slow
@NEEDS_TORCH
def test_where_none_does_not_fit_peers_are_held_to_what_does() -> None:
    everywhere = dict.fromkeys(("memory", "peers", "difference", "timing"), LIMIT)
    record = limited_profile(everywhere, ["none", "remat"], ["torch"])
    assert [row.strategy for row in record.rows if row.engine == OURS] == ["remat"]
    (peer,) = peers_of(record)
    assert peer.name == "torch remat"
    assert peer.agreement is not None
    assert peer.agreement.agrees
    assert len(peer.samples) == 2


@pytest.mark.slow
@NEEDS_TORCH
def test_a_peer_without_its_partner_is_told() -> None:
    two_networks = LIMIT + 7 * KIB
    record = limited_profile({"timing": two_networks}, ["none", "remat"], ["torch"])
    assert [failure.strategy for failure in record.failures] == ["none"]
    alone, paired = peers_of(record)
    assert [len(peer.samples) for peer in (alone, paired)] == [2, 2]
    assert alone.own_ratio is None
    assert paired.own_ratio is not None
    told = "torch none: no ratio to ckpt's own `none`, which ran out of memory"
    assert [text for text in record.warnings if "no ratio" in text] == [told]


@pytest.mark.slow
@NEEDS_TORCH
def test_an_interrupt_keeps_the_peers_that_are_done() -> None:
    def interrupt(phase: str, done: int, total: int) -> None:
        if (phase, done) == ("peers", 1):
            raise KeyboardInterrupt

    record = profile(
        NETWORK,
        ["none", "remat"],
        engines=open_engines(["torch"]),
        plan=PLAN,
        progress=interrupt,
    )
    done, left = peers_of(record)
    assert record.partial
    assert (done.name, done.reason, done.samples) == ("torch none", None, ())
    assert done.memory is not None
    assert (left.name, left.memory) == ("torch remat", None)
    assert left.reason == "the run was interrupted before its pass"
    assert read_record(record_json(record), "text") == record


def test_a_finite_difference_that_does_not_fit_is_told() -> None:
    backend = Limited({"difference": 1})
    record = profile(
        TrgWorkload(steps=2, chi=2),
        ["none"],
        backend=backend,
        plan=PLAN,
        progress=backend.progress,
    )
    (strategy,) = record.rows
    assert strategy.outcome.gradient is not None
    assert strategy.outcome.finite_difference is None
    assert len(strategy.samples) == 2
    assert "no finite difference of the loss: MemoryError" in record.warnings
