"""Flat programs: bits and draws of the tape, no more memory; what is not one list is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli import Device, Tensor
from ckptcli.backends import open_backend
from ckptcli.backends.ledger import Ledger
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import ReplayError
from ckptcli.measure.rounds import collector_off
from ckptcli.passes.run import open_pass, run_pass
from ckptcli.profiling.replayed_pass import flat_memory
from ckptcli.replay.flat_program import flat_program
from ckptcli.workloads.base import ForwardResult, Workload
from ckptcli.workloads.silu import SiluWorkload
from tests.gradient_cases import CASES
from tests.helpers import same_bits
from tests.program_kit import Command
from tests.simulated import FunctionWorkload
from tests.test_predicted_ops import program_of_the_op
from tests.test_predicted_programs import EXAMPLES, opened

NUMPY = open_backend("numpy")
STRATEGIES = ("none", "balanced", "remat", "sqrt", "budget:1MiB")


def assert_replayed(workload: Workload, strategies: tuple[str, ...]) -> None:
    """Three rounds of the tape and of the flat program, bit for bit; and the ledger's peaks."""
    for text in strategies:
        tape = open_pass(workload, parse_strategy(text), NUMPY)
        flat = flat_program(workload, parse_strategy(text), NUMPY)
        for _ in range(3):
            results = tape.forward(), flat.forward()
            assert results[0].loss == results[1].loss
            gradients = [half.backward(r) for half, r in zip((tape, flat), results)]
            arrays = [_arrays(g, r) for g, r in zip(gradients, results)]
            assert same_bits(*arrays)
        memory, _ = flat_memory(flat, parse_strategy(text), NUMPY)
        assert (memory.ledger_peak_bytes or 0) <= _tape_peak(workload, text)


def _arrays(gradients: Any, result: ForwardResult) -> list[Any]:
    found = [gradients.wrt(tensor) for tensor in result.parameters.values()]
    return [gradient.numpy() for gradient in found if gradient is not None]


def _tape_peak(workload: Workload, strategy: str) -> int:
    ledger = Ledger()
    with collector_off():
        tape = open_pass(workload, parse_strategy(strategy), NUMPY, None, ledger)
        ledger.start_phase()
        tape.backward(tape.forward())
    return ledger.peak.live_bytes


def test_a_silu_network_is_replayed_bit_for_bit() -> None:
    assert_replayed(SiluWorkload(4, 16), STRATEGIES)


@pytest.mark.parametrize(("strategy", "tensors"), [("none", 24), ("balanced", 11), ("remat", 10)])
def test_a_result_is_written_over_memory_that_is_dead(strategy: str, tensors: int) -> None:
    """Ten tensors with all gradients kept, where eleven is the least on the tape."""
    planned = parse_strategy(strategy)
    memory, _ = flat_memory(flat_program(SiluWorkload(8, 64), planned, NUMPY), planned, NUMPY)
    peak = (memory.ledger_peak_bytes or 0) - (memory.params_input_bytes or 0)
    assert tensors * 64 * 64 * 4 <= peak <= tensors * 64 * 64 * 4 + 8


@pytest.mark.sampled(10)
@pytest.mark.parametrize("op", sorted(CASES))
def test_a_program_of_the_op_is_replayed_bit_for_bit(op: str) -> None:
    assert_replayed(program_of_the_op(CASES[op][0]), ("none", "balanced"))


@pytest.mark.slow
@pytest.mark.parametrize("program", ["transformer.py:Model", "mlp.py:make", "recurrent.py:make"])
def test_an_example_is_replayed_bit_for_bit(program: str) -> None:
    assert_replayed(opened(f"{EXAMPLES / program}"), ("none", "balanced", "remat"))


def program(function: Any, size: int = 4) -> FunctionWorkload:
    import numpy as np

    return FunctionWorkload([np.linspace(-1.0, 1.0, size)], function)


def test_views_of_parameters_and_input_are_made_once() -> None:
    flat = flat_program(SiluWorkload(4, 16), parse_strategy("none"), NUMPY)
    inner_outputs = 3  # of whose transpose a weight's gradient is made, in every pass
    assert flat.text.count("matrix_transpose") == inner_outputs


def test_gradients_are_consumed_as_on_the_tape() -> None:
    workload = SiluWorkload(6, 16).passing(True, False)
    for text in ("none", "balanced", "remat"):
        strategy = parse_strategy(text)
        flat = flat_program(workload, strategy, NUMPY)
        memory, done = flat_memory(flat, strategy, NUMPY)
        expected = run_pass(workload, strategy, NUMPY)
        assert same_bits(
            list(done.gradient_arrays().values()), list(expected.gradient_arrays().values())
        )
        assert (memory.ledger_peak_bytes or 0) <= _tape_peak(workload, text)
        assert memory.after_backward_bytes == (memory.params_input_bytes or 0) + 4  # and the loss
        kept = flat.backward(flat.forward())
        names = [n for n, tensor in done.result.parameters.items() if kept.wrt(tensor)]
        assert names == [workload.shown_parameter]


def test_random_draws_are_inputs_of_the_program() -> None:
    from ckptcli.autodiff.functions.dropout import dropout

    def loss(x: Tensor) -> Tensor:
        with x.region("block"):
            y = dropout(x.exp(), 0.5) * x.device.uniform(x.shape, dtype="float64")
        return (y * y).sum()

    workload = program(loss, 32)
    assert_replayed(workload, ("none", "balanced"))
    flat = flat_program(workload, parse_strategy("none"), NUMPY)
    assert len({flat.forward().loss for _ in range(3)}) == 3


def test_a_view_and_data_of_the_host_are_replayed() -> None:
    import numpy as np

    data = np.arange(4.0)

    def loss(x: Tensor) -> Tensor:
        y = x.device.tensor(data, "float64")
        return (x.reshape([2, 2]).transpose() * y.reshape([2, 2])).sum()

    assert_replayed(program(loss), ("none", "balanced"))


def test_a_program_that_reads_a_value_is_refused() -> None:
    def loss(x: Tensor) -> Tensor:
        return x * x.sum().item()

    with pytest.raises(ReplayError, match="reads a value inside its pass"):
        flat_program(program(loss), parse_strategy("none"), NUMPY)


def test_a_refusal_in_a_file_of_the_users_keeps_its_advice(told: Command) -> None:
    text = """
def make(device):
    w = device.tensor([0.5, 0.2]).require_grad()
    return lambda: (w * w.sum().item()).sum()
"""
    code, _, errors = told(text, "run", "--replay", "--reps", "1")
    assert code == 1
    assert "failed at mine.py:4" in errors
    assert "hint: run without --replay" in errors


def test_a_program_that_branches_is_refused_with_the_first_difference() -> None:
    passes: list[int] = []

    def loss(x: Tensor) -> Tensor:
        passes.append(1)
        return (x.exp() if len(passes) % 2 else x.sin()).sum()

    with pytest.raises(ReplayError, match=r"call 0 of forward is `exp.*`, then `sin"):
        flat_program(program(loss), parse_strategy("none"), NUMPY)


def test_the_same_data_made_anew_is_replayed() -> None:
    import numpy as np

    def loss(x: Tensor) -> Tensor:
        y = x.exp().mask_fill(np.array([True, False, False, True]), 0.5)
        z = y.select(0, np.array([1, 3, 3])) + y.select(0, [0, 0, 2])
        return (z * x.device.tensor(np.arange(3.0))).sum()

    assert_replayed(program(loss), ("none", "balanced"))


def test_data_of_the_host_stays_as_it_is() -> None:
    """A tensor may share the memory of such data, so that nothing may be written into it."""
    import numpy as np

    data, indices = np.arange(4.0), np.array([3, 1, 1, 0])

    def loss(x: Tensor) -> Tensor:
        y = x.device.tensor(data, "float64", copy=False)
        return (y.exp() * x.gather(0, indices)).sum()

    assert_replayed(program(loss), ("none", "balanced"))
    assert same_bits([data, indices], [np.arange(4.0), np.array([3, 1, 1, 0])])


@pytest.mark.parametrize("copy", [True, False])
def test_a_program_that_takes_other_data_each_time_is_refused(copy: bool) -> None:
    import numpy as np

    data = np.ones(4)

    def loss(x: Tensor) -> Tensor:
        data[:] += 1.0  # in place: the same object, other elements
        return (x * x.device.tensor(data, "float64", copy=copy)).sum()

    with pytest.raises(
        ReplayError, match=r"call 0 of forward, `asarray\(float64 \[4\].*other data"
    ):
        flat_program(program(loss), parse_strategy("none"), NUMPY)


def test_a_program_that_seeds_its_draws_anew_is_replayed() -> None:
    def loss(x: Tensor) -> Tensor:
        x.device.seed(3)
        return (x * x.device.uniform(x.shape, dtype="float64")).sum()

    assert_replayed(program(loss), ("none", "balanced"))


def test_draws_that_do_not_follow_each_other_are_refused() -> None:
    passes: list[int] = []

    def loss(x: Tensor) -> Tensor:
        passes.append(1)
        x.device.seed(len(passes))
        return (x * x.device.uniform(x.shape, dtype="float64")).sum()

    with pytest.raises(ReplayError, match="random draws do not follow each other"):
        flat_program(program(loss), parse_strategy("none"), NUMPY)


def test_what_an_earlier_pass_left_in_memory_is_no_difference() -> None:
    cycles: list[Tensor] = []

    def loss(x: Tensor) -> Tensor:
        cycles.append(x.exp())
        return (cycles[-1] * x).sum()

    assert_replayed(program(loss), ("none", "balanced"))


def test_a_value_that_is_carried_over_to_the_next_pass_is_refused() -> None:
    import numpy as np

    carried: list[Tensor] = []

    def loss(x: Tensor) -> Tensor:
        before = carried.pop() if carried else x.device.tensor(np.ones(4))
        carried.append((x * before).detach())
        return (x * carried[0]).sum()

    with pytest.raises(ReplayError, match="is not the same in every pass"):
        flat_program(program(loss), parse_strategy("none"), NUMPY)


def test_a_program_whose_parameters_are_made_anew_is_refused() -> None:
    class Rebinding(SiluWorkload):
        def load(self, dev: Device) -> Any:
            network = super().load(dev)
            forward = network.forward

            def rebound() -> Any:
                weight = network.weights[0]
                network.weights[0] = dev.tensor(weight.numpy() * 1.0).require_grad()
                return forward()

            network.forward = rebound  # type: ignore[method-assign]
            return network

    with pytest.raises(ReplayError):
        flat_program(Rebinding(2, 4), parse_strategy("none"), NUMPY)


def test_the_command_has_a_row_of_the_flat_program_beside_that_of_the_tape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", "--n", "8", "--layers", "3", "--reps", "2", "--replay"]
    assert run_command([*run, "--fail-on", "replay balanced.peak_bytes > 1MiB", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    rows = {(row["engine"], row["strategy"]): row for row in record["strategies"]}
    assert list(rows) == [(e, s) for e in ("ckpt", "replay") for s in ("none", "balanced")]
    for name in ("none", "balanced"):
        tape, flat = rows["ckpt", name], rows["replay", name]
        same = ("grad_sha256", "loss", "recomputed_by_op", "grad_sum_w0", "params_input_bytes")
        assert [flat[key] for key in same] == [tape[key] for key in same]
        assert flat["peak_bytes"] <= tape["peak_bytes"]
        assert flat["agreement"]["agrees"]
        assert flat["agreement"]["tolerance"] == 0.0
        assert len(flat["total_s"]["samples"]) == 2
        assert flat["own_ratio"] is not None


def test_a_flat_program_of_a_wrong_recomputation_is_wrong_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", "--workload", "trg", "--steps", "4", "--chi", "4", "--memory-only", "--json"]
    assert run_command([*run, "--replay", "--perturb-replay", "ulp"]) == 5
    rows = json.loads(capsys.readouterr().out)["strategies"]
    words = [(row["judgement"] or {}).get("word") for row in rows]
    assert [word == "wrong" for word in words] == [False, True, False, True]


def test_replay_is_a_row_of_every_point_and_in_the_line_that_measures_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", "--n", "4,8", "--layers", "2", "--memory-only", "--replay"]
    assert run_command(run) == 0
    printed = capsys.readouterr()
    assert printed.out.count("replay balanced") >= 2
    again = next(line for line in printed.err.splitlines() if line.startswith("next: "))
    assert "--replay" in again
    assert "--engine" not in again
