"""`sqrt` cuts layers by bytes where it knows the program, and says why; `sqrt:count` by count."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcli.autodiff.device import device
from ckptcli.backends import open_backend
from ckptcli.checkpoint.layer_bytes import grouped, layer_bytes
from ckptcli.checkpoint.segments import least_peak
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import UsageError
from ckptcli.passes.watched import program_graph
from ckptcli.profiling.memory_pass import MemoryPass, memory_pass
from ckptcli.verify.check import check
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload
from ckptcli.workloads.trg import TrgWorkload
from tests.program_kit import SILU, Opener

FUNNEL = """
import numpy as np

WIDTHS = [64, 64, 64, 64, 8, 8, 8, 8, 8, 8]

def make(device):
    rng = np.random.Generator(np.random.PCG64(0))
    weights = [
        device.tensor((rng.normal(size=pair) / pair[0] ** 0.5).astype("float32")).require_grad()
        for pair in zip(WIDTHS, WIDTHS[1:])
    ]
    x = device.tensor(rng.random((1024, 64)).astype("float32"))

    def loss():
        h = x
        for layer in device.layers(len(weights)):
            h = h.matmul(weights[layer]).silu()
        return h.sum()

    return loss
"""
WIDE_BYTES, NARROW_BYTES = 1024 * 64 * 4, 1024 * 8 * 4
"""What one value of a layer takes: of the nine, the first three are eight times as wide."""

HOURGLASS = """
import numpy as np

def make(device):
    rng = np.random.Generator(np.random.PCG64(0))
    weights = [
        device.tensor((rng.normal(size=(32, 32)) / 6).astype("float32")).require_grad()
        for _ in range(9)
    ]
    x = device.tensor(rng.random((1024, 32)).astype("float32"))

    def loss():
        h, skips = x, {}
        for layer in device.layers(9):
            rows = h.shape[0]
            if layer < 5:
                h = h.narrow(0, 0, rows // 2) + h.narrow(0, rows // 2, rows // 2)
            else:
                h = h.reshape([1, rows, 32]).expand([2, rows, 32]).reshape([2 * rows, 32])
                h = h * skips[2 * rows]
            h = h.matmul(weights[layer]).silu()
            skips[h.shape[0]] = h
        return h.sum()

    return loss
"""

TWO_LOOPS = """
def make(device):
    w = device.tensor([[0.5] * 64] * 64).require_grad()

    def loss():
        h = w
        for layer in device.layers(4):
            h = h.sin()
        h = h.narrow(0, 0, 1)
        for layer in device.layers(4):
            h = h.sin()
            if layer == 3:
                h = h.sin().sin().sin()
        return h.sum()

    return loss
"""


def measured(workload: Workload, strategy: str) -> MemoryPass:
    return memory_pass(workload, device(), parse_strategy(strategy), workspace=False)


def prepared(strategy: str, workload: Workload) -> Strategy:
    return parse_strategy(strategy).prepared(lambda: program_graph(workload, open_backend()))


def sizes(strategy: Strategy, count: int) -> list[int]:
    regions = strategy.layer_regions(count)
    assert regions is not None
    assert all(region.policy is not None for region in regions)
    return [region.size for region in regions]


def test_where_layers_differ_the_peak_is_lower_and_every_bit_the_same(opened: Opener) -> None:
    workload = opened(FUNNEL)
    none, by_bytes, by_count = (measured(workload, name) for name in ("none", "sqrt", "sqrt:count"))
    assert sizes(prepared("sqrt", workload), 9) == [2, 6, 1]
    peaks = [p.memory.ledger_peak_backward_bytes for p in (none, by_bytes, by_count)]
    assert peaks == [3263752, 2169348, 2939396]
    assert by_bytes.outcome.loss == none.outcome.loss
    assert {p.outcome.grad_sha256 for p in (none, by_bytes, by_count)} == {none.outcome.grad_sha256}
    assert by_bytes.outcome.recomputed_by_op == {"matmul": 9, "sigmoid": 9, "mul": 6}
    assert by_count.outcome.recomputed_by_op == {"matmul": 9, "sigmoid": 9, "mul": 6}
    assert by_bytes.memory.saved_bytes == WIDE_BYTES + NARROW_BYTES
    assert by_bytes.memory.saved_tensors == 2


def test_values_that_skip_layers_are_held_once_and_the_peak_is_lower(opened: Opener) -> None:
    """Layers that halve the rows, then double them, each beside what a layer on the way in made."""
    workload = opened(HOURGLASS)
    none, by_bytes, by_count = (measured(workload, name) for name in ("none", "sqrt", "sqrt:count"))
    peaks = [p.memory.ledger_peak_backward_bytes for p in (none, by_bytes, by_count)]
    assert peaks == [1228808, 675844, 806920]
    assert {p.outcome.grad_sha256 for p in (none, by_bytes, by_count)} == {none.outcome.grad_sha256}
    graph = program_graph(workload, open_backend())
    (layers,) = layer_bytes(graph)
    for strategy, found in (("sqrt", by_bytes), ("sqrt:count", by_count)):
        grouping = grouped(layers, sizes(prepared(strategy, workload), 9))
        assert sum(grouping.held_bytes) == found.memory.saved_bytes


COLLECTED = """
def make(device):
    w = device.tensor([[0.5] * 8] * 8).require_grad()

    def loss():
        h, total = w, []
        for layer in device.layers(4):
            h = h.sin().cos()
            total.append(h)
        return sum((each.square().sum() for each in total[1:]), total[0].square().sum())

    return loss
"""


def test_what_is_needed_after_the_layers_is_held_wherever_they_are_cut(opened: Opener) -> None:
    """Each layer's output; its sine is what a segment computes again, and the output on the way."""
    workload = opened(COLLECTED)
    (layers,) = layer_bytes(program_graph(workload, open_backend()))
    for cut in ([4], [2, 2], [1, 1, 1, 1]):
        assert set(grouped(layers, cut).held_bytes) == {0}
    held = [measured(workload, name).memory.saved_bytes for name in ("segments:1", "segments:4")]
    assert held == [4 * 256, 4 * 256]


def test_what_it_reckons_with_is_what_the_pass_computes_again_and_holds(opened: Opener) -> None:
    """Products, sigmoids and what a layer passes on inside its segment; what is held once."""
    workload = opened(FUNNEL)
    reasons = prepared("sqrt", workload).reasons()
    assert reasons == (
        "segment layers 0 to 1: computes 1.2 MiB again, 256.0 KiB held for later segments",
        "segment layers 2 to 7: computes 1.2 MiB again, 32.0 KiB held for later segments",
        "segment layer 8: computes 64.0 KiB again, 0 B held for later segments",
        "segments by bytes: 288.0 KiB held + 1.2 MiB of the largest = 1.5 MiB; by count they would "
        "be layers 0 to 2, layers 3 to 5, layers 6 to 8: 288.0 KiB held + 2.0 MiB of the largest = "
        "2.3 MiB",
    )


@pytest.mark.parametrize("layers", [1, 2, 5, 6, 8, 10, 17])
def test_equal_layers_are_cut_by_count(layers: int) -> None:
    workload = SiluWorkload(layers, 4)
    assert sizes(prepared("sqrt", workload), layers) == sizes(parse_strategy("sqrt:count"), layers)
    assert measured(workload, "sqrt").memory == measured(workload, "sqrt:count").memory
    assert prepared("sqrt", workload).reasons()[-1].endswith("; by count they are the same")


@pytest.mark.parametrize("steps", [6, 8])
@pytest.mark.slow
def test_steps_of_the_trg_grow_and_peak_lower_by_bytes(steps: int) -> None:
    workload = TrgWorkload(steps)
    by_bytes, by_count = measured(workload, "sqrt"), measured(workload, "sqrt:count")
    peaks = [p.memory.ledger_peak_backward_bytes for p in (by_bytes, by_count)]
    assert peaks[0] < peaks[1]
    assert by_bytes.outcome.grad_sha256 == by_count.outcome.grad_sha256


def test_without_the_program_it_cuts_by_count() -> None:
    """What a peer asks: another library's program has no graph here."""
    assert sizes(parse_strategy("sqrt"), 9) == [3, 3, 3]
    assert parse_strategy("sqrt").reasons() == ()


def test_of_loops_with_as_many_layers_the_larger_one_decides(opened: Opener) -> None:
    workload = opened(TWO_LOOPS)
    _, smaller = layer_bytes(program_graph(workload, open_backend()))
    assert least_peak(smaller, 2).sizes == (3, 1)
    strategy = prepared("sqrt", workload)
    assert sizes(strategy, 4) == [2, 2]
    assert sizes(strategy, 9) == [3, 3, 3]


def test_names_and_arguments() -> None:
    assert parse_strategy("sqrt").name == "sqrt"
    assert parse_strategy("sqrt:count").name == "sqrt:count"
    assert prepared("sqrt", SiluWorkload(2, 4)).name == "sqrt"
    with pytest.raises(UsageError, match="strategy `sqrt` takes `count` or nothing, got `bytes`"):
        parse_strategy("sqrt:bytes")


def test_a_check_passes_on_layers_that_differ(opened: Opener) -> None:
    found = check(opened(FUNNEL), parse_strategy("sqrt"), opened(FUNNEL, dtype="float64"))
    assert found.passed
    assert found.compared == 24


def test_the_explained_log_has_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FUNNEL)
    command = ["log", "--workload", "mine.py:make", "--level", "basic", "--explain"]
    assert run_command([*command, "-s", "sqrt"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("# graph: ")
    assert lines[1].startswith("# segment layers 0 to 1: computes 1.2 MiB again, 256.0 KiB held")
    assert lines[4].startswith("# segments by bytes: 288.0 KiB held + 1.2 MiB of the largest")
    assert run_command([*command, "-s", "sqrt:count"]) == 0
    assert "segment" not in capsys.readouterr().out
    Path("mine.py").write_text(SILU)
    assert run_command([*command, "-s", "sqrt"]) == 0
    assert "; by count they are the same" in capsys.readouterr().out


@pytest.mark.slow
def test_the_perturbed_strategy_cuts_by_bytes_too(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "--workload", "trg", "--steps", "6", "-s", "sqrt"]
    assert run_command([*command, "--perturb-replay", "sign:4,a,5"]) == 5
    assert "differs in the signs of column 5" in capsys.readouterr().out
