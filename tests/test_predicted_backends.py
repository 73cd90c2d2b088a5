"""Predicted bytes are the ledger's on every array library that programs are recorded on."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ckptcli import Device, device
from ckptcli.backends.libraries.cupy_library import CupyLibrary
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.cli.main import run_command
from ckptcli.errors import UsageError
from ckptcli.simulation.recorder import record
from ckptcli.workloads.silu import SiluWorkload
from tests import cupy_stand_in
from tests.backend_kit import NEEDS_TORCH
from tests.gradient_cases import CASES
from tests.simulated import assert_predicted, measured, strategy_of
from tests.test_predicted_ops import program_of_the_op
from tests.test_predicted_programs import EXAMPLES, opened

STRATEGIES = ("none", "balanced", "remat", "sqrt", "random:1")
CUPY = "ckptcli.backends.cupy_backend"
LIBRARIES = [
    "cupy",
    pytest.param("torch", marks=[NEEDS_TORCH, pytest.mark.slow]),
]


@pytest.fixture
def base(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """The device without autodiff; CuPy's is that of its stand-in."""
    if request.param == "torch":
        yield device("torch", "cpu")
        return
    for name, module in cupy_stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(CupyLibrary, "packages", ("numpy",))
    monkeypatch.delitem(sys.modules, CUPY, raising=False)
    yield device("cupy")
    sys.modules.pop(CUPY, None)
    vars(importlib.import_module("ckptcli.backends")).pop("cupy_backend", None)


@pytest.mark.parametrize("base", LIBRARIES, indirect=True)
def test_a_network_is_predicted_to_the_byte(base: Device) -> None:
    assert_predicted(SiluWorkload(3, 16), STRATEGIES, base)
    consuming = SiluWorkload(3, 16, 4).passing(True, False)
    assert_predicted(consuming, STRATEGIES, base)
    forward_peak, held, backward_peak, left, *_ = measured(consuming, strategy_of("none"), base)
    graph = record(consuming, base.backend, consumes=True)
    assert graph.base_bytes < left < held <= forward_peak < backward_peak


@pytest.mark.sampled(40)
@pytest.mark.parametrize("base", LIBRARIES, indirect=True)
@pytest.mark.parametrize("op", sorted(CASES))
def test_a_program_of_the_op_is_predicted_to_the_byte(op: str, base: Device) -> None:
    assert_predicted(program_of_the_op(CASES[op][0]), STRATEGIES, base)


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize("program", ["transformer.py:Model", "mlp.py:make", "recurrent.py:marked"])
def test_an_example_is_predicted_to_the_byte_on_pytorch(program: str) -> None:
    assert_predicted(
        opened(f"{EXAMPLES / program}"), ("none", "balanced", "random:1"), device("torch")
    )


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_a_plan_on_pytorch_takes_what_was_predicted(
    dtype: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "-q", "--backend", "torch", "-n", "32", "-l", "4", "--dtype", dtype]
    assert run_command([*words, "--budget", "1MiB", "--json"]) == 0
    most = json.loads(capsys.readouterr().out)["peak"]
    assert run_command([*words, "--budget", str(most * 3 // 4), "--run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["measured"]["peak_bytes"] == found["peak"] <= most * 3 // 4
    assert found["measured"]["gradients_equal"]
    assert found["recomputed"]
    assert not found["covers"]["workspace"]
    assert found["covers"]["backend"] == "Torch(Cpu)"
    assert run_command([*words, "--budget", "1MiB", "--width", "200"]) == 0
    assert "which nobody sees on Torch(Cpu)" in capsys.readouterr().out


class Unlendable(NumpyBackend):
    """A device whose memory cannot be lent, as Apple's GPU."""

    label = "Torch(Mps)"
    can_lend = False


def test_a_device_that_cannot_lend_is_refused_before_anything_runs() -> None:
    class Watched(SiluWorkload):
        def load(self, dev: Any) -> Any:
            raise AssertionError("nothing is loaded")

    with pytest.raises(UsageError, match=r"cannot be recorded on Torch\(Mps\)"):
        record(Watched(2, 8), Unlendable())
    with pytest.raises(UsageError, match="cannot lend"):
        super(NumpyBackend, Unlendable()).lend(NumpyBackend().asarray([1.0], None, True))
