"""`scripts/gpu-check` on the processor, with small networks, and that it sees what is wrong."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.backends import numpy_namespace
from ckptcli.backends.libraries.torch_library import TorchLibrary
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.registry import DeviceFacts
from ckptcli.checkpoint.checkpointer import Checkpointer
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from tests.backend_kit import NEEDS_TORCH
from tests.helpers import DATA

ROOT = Path(__file__).parent.parent
SMALL = ("--layers", "3", "--sizes", "8", "--max-time", "0.05")


@pytest.fixture
def gpu_check(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, its neighbour beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("gpu_check")


def checked(gpu_check: Any, folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and figures of a check on NumPy."""
    code = gpu_check.main([str(folder), "--backend", "numpy", *SMALL, *arguments])
    return code, json.loads((folder / "gpu-check.json").read_text())


@pytest.mark.slow
@NEEDS_TORCH
def test_it_runs_from_the_tree_with_nothing_installed(tmp_path: Path) -> None:
    """In another directory; of the project's dependencies NumPy alone is there."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    for name in ("click", "rich", "psutil", "threadpoolctl", "tomli", "pytest"):
        (hidden / f"{name}.py").write_text("raise ImportError('not on this machine')\n")
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "PYTHONPATH": str(hidden),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [
            ROOT / "scripts/gpu-check",
            "out",
            "--backend",
            "torch",
            "--device",
            "cpu",
            *SMALL,
            "--sizes",
            "8,16",
        ],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conformance: 400 of 400 cases" in done.stdout
    figures = json.loads((tmp_path / "out/gpu-check.json").read_text())
    assert (figures["schema"], figures["finished"], figures["passed"]) == (
        "ckpt.gpu-check/1",
        True,
        True,
    )
    (target,) = figures["targets"]
    assert target["device"] == "Torch(Cpu)"
    assert target["conformance"]["worst_relative_error"] < 1e-12
    assert [each["n"] for each in target["networks"]] == [8, 16]
    for each in target["networks"]:
        strategies = {s["strategy"]: s for s in each["strategies"]}
        assert list(strategies) == ["none", "balanced", "remat"]
        assert strategies["none"]["memory"]["saved_tensors"] == 8
        assert strategies["balanced"]["recomputed_by_op"] == {"mul": 2, "sigmoid": 3}
        assert all(s["times"]["total_s"]["median"] > 0 for s in strategies.values())


@pytest.mark.slow
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_sound_library_passes(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deterministic: bool
) -> None:
    """Where two runs may differ, how far they do is measured first."""
    monkeypatch.setattr(NumpyBackend, "is_deterministic", deterministic)
    code, figures = checked(gpu_check, tmp_path, "--cases", "40")
    assert (code, figures["passed"]) == (0, True)
    (target,) = figures["targets"]
    assert target["conformance"]["cases"] == 40
    spread = None if deterministic else 0.0
    assert [each["spread"] for each in target["networks"]] == [spread]


def broken(figures: dict[str, Any]) -> str:
    (target,) = figures["targets"]
    return "\n".join(target["broken"])


@pytest.mark.slow
def test_another_log_or_gradient_than_burns_is_found(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (DATA / "burn_conformance.jsonl").read_text().splitlines()[:3]
    cases = [json.loads(line) for line in lines]
    cases[0]["log"] = cases[0]["log"][:-1]
    cases[1]["grads"]["1"][0] = 1e-9
    cases[2]["grads"]["7"] = [0.0] * 4
    altered = tmp_path / "altered.jsonl"
    altered.write_text("\n".join(map(json.dumps, cases)))
    monkeypatch.setattr(importlib.import_module("gpu_parts"), "CASES", altered)
    code, figures = checked(gpu_check, tmp_path)
    assert (code, figures["passed"]) == (1, False)
    assert "case 0 (none): the log is not Burn's" in broken(figures)
    assert "case 1 (balanced): the gradient of leaf 1 is off by 1.0e-09" in broken(figures)
    assert "case 2 (none): other leaves have gradients" in broken(figures)


@pytest.mark.slow
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_recomputed_value_that_drifts_is_found(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deterministic: bool
) -> None:
    monkeypatch.setattr(NumpyBackend, "is_deterministic", deterministic)
    right = Checkpointer.retro_forward

    def drifting(self: Any, node: Any) -> None:
        right(self, node)
        if node.op.name == "sigmoid":
            self.values[node.id] = self.values[node.id] * 1.0001

    monkeypatch.setattr(Checkpointer, "retro_forward", drifting)
    code, figures = checked(gpu_check, tmp_path, "--cases", "0")
    assert code == 1
    assert "n = 8, balanced: the gradient of w1 is not `none`'s" in broken(figures)


@pytest.mark.slow
def test_what_stays_in_memory_is_found(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    matmul = numpy_namespace.matmul

    def leaking(*arguments: Any) -> Any:
        kept.append(matmul(*arguments))
        return kept[-1]

    monkeypatch.setattr(numpy_namespace, "matmul", leaking)
    code, figures = checked(gpu_check, tmp_path, "--cases", "0")
    assert code == 1
    assert "n = 8, none: 3072 bytes in use after the pass, 1024 before" in broken(figures)


@pytest.mark.slow
def test_a_strategy_that_peaks_no_lower_is_found(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BalancedCheckpointing, "recomputes", lambda self, node: False)
    code, figures = checked(gpu_check, tmp_path, "--cases", "0")
    assert code == 1
    assert "n = 8: balanced peaks at 3336 bytes, `none` at 3336" in broken(figures)


@pytest.mark.slow
def test_a_part_that_fails_is_told_and_the_others_run(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("gpu_parts"), "CASES", tmp_path / "absent")
    code, figures = checked(gpu_check, tmp_path)
    assert code == 1
    assert "conformance: FileNotFoundError" in broken(figures)
    assert len(figures["targets"][0]["networks"]) == 1


@pytest.mark.slow
def test_what_there_is_no_time_for_is_left_out(gpu_check: Any, tmp_path: Path) -> None:
    code, figures = checked(gpu_check, tmp_path, "--minutes", "0")
    assert code == 1
    assert (figures["finished"], figures["passed"]) == (True, False)
    assert len(figures["left_out"]) == 2


@pytest.mark.slow
@NEEDS_TORCH
def test_the_gpus_that_there_are_are_checked(
    gpu_check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processor in the place of a GPU."""
    pretended = DeviceFacts("cpu", "a pretended GPU", is_gpu=True)
    monkeypatch.setattr(TorchLibrary, "devices", lambda self: [pretended])
    found = {target.backend.name: target.title for target in gpu_check.find_targets(None, None)}
    assert found["torch"] == "a pretended GPU"
    assert "numpy" not in found


def test_without_a_gpu_there_is_nothing_to_check(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for library in gpu_check.libraries().values():
        monkeypatch.setattr(type(library), "installed_version", lambda self: None)
    assert gpu_check.main([str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("gpu-check: no GPU to check: CuPy is not installed, PyTorch is not")
    assert "--backend" in told


def test_a_backend_that_is_not_there(gpu_check: Any, tmp_path: Path, capsys: Any) -> None:
    assert gpu_check.main([str(tmp_path), "--backend", "nunpy"]) == 2
    assert "did you mean `numpy`?" in capsys.readouterr().err


@pytest.mark.slow
def test_a_figure_that_is_no_number_is_null(gpu_check: Any, tmp_path: Path) -> None:
    report = gpu_check.Report(tmp_path / "gpu-check.json", {"limit": float("inf")}, [])
    report.write(finished=True)
    figures = json.loads(report.path.read_text(), parse_constant=lambda word: pytest.fail(word))
    assert figures["options"] == {"limit": None}
    assert figures["warnings"] == ["options.limit is inf, printed as null"]


@pytest.mark.slow
def test_a_library_that_cannot_be_loaded_is_no_target(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fails(self: Any) -> Any:
        raise OSError("libcudart.so.12: cannot open")

    for library in gpu_check.libraries().values():
        if "cuda" in library.device_names:
            monkeypatch.setattr(type(library), "packages", ("numpy",))
            monkeypatch.setattr(type(library), "devices", fails)
    assert gpu_check.main([str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "PyTorch cannot be loaded: libcudart" in told
    assert "CuPy cannot be loaded: libcudart" in told
