"""`revolve:SLOTS`: the closed form's number of layers again and its peak, the bits of `none`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli.backends import open_backend
from ckptcli.cli.main import run_command
from ckptcli.planning.binomial import advances
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.revolve import revolved
from ckptcli.simulation.recorder import record
from ckptcli.workloads.silu import SiluWorkload
from tests.test_predicted_programs import EXAMPLES

N = 16
TENSOR = N * N * 4
SCALARS_BYTES = 8
NUMPY = open_backend("numpy")


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert run_command(["run", "-q", "--memory-only", "--json", *words]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["strategies"]
    return rows


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layers", [1, 2, 3, 4, 8, 13, 30])
def test_layers_again_are_the_closed_form_s(layers: int) -> None:
    graph = record(SiluWorkload(layers, N), NUMPY)
    model = ProgramProblem(graph).model
    for slots in range(1, layers + 2):
        schedule = revolved(model, slots)
        again = [node for node in schedule.computations() if graph.nodes[node].op == "matmul"]
        assert len(again) == advances(layers, min(slots, layers))


@pytest.mark.parametrize("slots", [1, 2, 3, 6, 20])
def test_it_takes_a_tensor_a_slot_and_has_the_bits_of_none(
    slots: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside slots there are a layer's p and s, and two gradients or the state at hand; x_0's is
    the input, and the last layer needs none.
    """
    layers = 8
    words = ("--n", str(N), "--layers", str(layers), "-s", "none", "-s", f"revolve:{slots}")
    none, row = ran(capsys, *words, "--consume-grads")
    assert row["grad_sha256"] == none["grad_sha256"]
    above_bytes = row["ledger_peak_bytes"] - row["params_input_bytes"]
    tensors = min(slots, layers - 2) + 4
    assert tensors * TENSOR <= above_bytes <= tensors * TENSOR + SCALARS_BYTES
    none, row = ran(capsys, *words)
    assert row["grad_sha256"] == none["grad_sha256"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--workload", f"{EXAMPLES / 'mlp.py'}:make"), marks=pytest.mark.slow),
        pytest.param(
            ("--workload", f"{EXAMPLES / 'transformer.py'}:Model"), marks=pytest.mark.slow
        ),
        ("--workload", "trg", "--steps", "3", "--chi", "3"),
    ],
)
def test_other_networks_of_layers_have_the_bits_of_none(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ran(capsys, *words, "-s", "none", "-s", "revolve:1", "-s", "revolve:2")
    assert len({row["grad_sha256"] for row in rows}) == 1
    assert rows[2]["after_forward_bytes"] < rows[0]["after_forward_bytes"]


@pytest.mark.parametrize("text", ["revolve", "revolve:0", "revolve:-1", "revolve:²", "revolve:x"])
def test_slots_that_are_none_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "-s", text]) == 2
    assert "strategy `revolve` needs a number of slots above 0" in capsys.readouterr().err


def test_a_program_without_layers_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ops = [{"op": "leaf", "data": [1.0], "req": True}, {"op": "exp", "in": [0]}]
    (tmp_path / "g.json").write_text(json.dumps({"ops": [*ops, {"op": "sum", "in": [1]}]}))
    assert (
        run_command(["run", "--workload", f"graph:{tmp_path / 'g.json'}", "-s", "revolve:2"]) == 2
    )
    error = capsys.readouterr().err
    assert "layers" in error
    assert "Traceback" not in error


SKIPPING = """
def make(device):
    w = [device.normal((8, 8)).require_grad() for _ in range(7)]
    x = device.normal((8, 8))

    def loss():
        first = (x @ w[0]).tanh()
        h, early, odd = first, first, first
        for layer in device.layers(6):
            new = (h @ w[layer + 1]).sigmoid() * first
            if layer == 1:
                early = new.exp()
            if layer % 2:
                odd = odd * new.tanh()
            h = new + early * odd
        return (h * early * odd).tanh().sum()

    return loss
"""


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_what_skips_layers_is_of_every_state_on_its_way(
    slots: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(SKIPPING, encoding="utf-8")
    words = ("--workload", f"{tmp_path / 'net.py'}:make", "-s", "none", "-s", f"revolve:{slots}")
    none, row = ran(capsys, *words)
    assert row["grad_sha256"] == none["grad_sha256"]
    assert row["after_forward_bytes"] < none["after_forward_bytes"]
