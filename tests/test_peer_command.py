"""`ckpt run --engine`: every strategy in every engine, and what cannot run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.cli.main import run_command
from ckptcli.errors import MissingLibraryError, UsageError
from ckptcli.peers.base import open_engines
from ckptcli.peers.torch_engine import TorchEngine
from ckptcli.profiling.peer_passes import check_peers
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import ENGINES, NEEDS_JAX, NEEDS_TORCH

CKPT = [sys.executable, "-m", "ckptcli"]
VALIDATOR = Draft202012Validator(
    json.loads((files("ckptcli.measure") / "schema" / "run-1.json").read_text(encoding="utf-8"))
)
ONE_REGION = "remat:every=6"
COMPILED = ("jax", "jax-scan")
SMALL = ("--layers", "3", "--n", "8", "--reps", "2")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run_command(["run", *SMALL, *arguments, "--json", "-q"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    VALIDATOR.validate(found)
    return found


@pytest.mark.long
@NEEDS_TORCH
@NEEDS_JAX
@pytest.mark.slow
def test_the_command_runs_every_strategy_in_every_engine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ["none", "balanced", "remat:names=p"]
    strategies = [word for name in names for word in ("-s", name)]
    chosen = [word for name in ENGINES for word in ("--engine", name)]
    data = printed(capsys, *strategies, *chosen, "--engine", "ckpt")
    rows = [(row["engine"], row["strategy"]) for row in data["strategies"]]
    assert rows == [(engine, name) for engine in ("ckpt", *ENGINES) for name in names]
    found = {(peer["engine"], peer["strategy"]): peer for peer in data["peers"]}
    assert list(found) == [(engine, name) for engine in ENGINES for name in names]
    without = {key for key, peer in found.items() if peer["reason"] is not None}
    assert without == {("torch", "remat:names=p")}
    for row in data["strategies"]:
        of_engine = row["engine"] != "ckpt"
        assert (row["counterpart"] is not None) == (of_engine and row["strategy"] == "balanced")
        beside = row["plain_agreement"]
        if row["strategy"] == "none" or not of_engine or row["reason"] is not None:
            assert beside is None
        else:
            assert (beside["beside"], beside["agrees"]) == (f"{row['engine']} none", True)
    for key, peer in found.items():
        assert (peer["memory"] is None) == (peer["agreement"] is None) == (key in without)
        assert len(peer["total_s"]["samples"]) == (0 if key in without else 2)
        assert len(peer["forward_s"]["samples"]) == (
            0 if key in without or key[0] in COMPILED else 2
        )
        assert (peer["compile_s"] is None) == (key in without or key[0] not in COMPILED)
        assert (peer["threads"] is None) == (key[0] != "torch")


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_double_network_leaves_jax_as_it_is(
    capsys: pytest.CaptureFixture[str], dtype: str
) -> None:
    import jax

    data = printed(capsys, "-s", "none", "--engine", "jax", "--dtype", dtype)
    (peer,) = data["peers"]
    assert peer["agreement"]["agrees"]
    assert peer["agreement"]["tolerance"] == {"float32": 1e-5, "float64": 1e-12}[dtype]
    assert jax.numpy.ones(1).dtype == np.float32


@NEEDS_TORCH
@NEEDS_JAX
@pytest.mark.slow
def test_threads_reach_pytorch_and_not_jax(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    before = torch.get_num_threads()
    data = printed(capsys, "-s", "none", "--engine", "torch", "--engine", "jax", "--threads", "1")
    assert [peer["threads"] for peer in data["peers"]] == [1, None]
    assert any("--threads 1 does not reach JAX" in text for text in data["warnings"])
    assert torch.get_num_threads() == before


@NEEDS_TORCH
@pytest.mark.slow
def test_processes_are_merged(capsys: pytest.CaptureFixture[str]) -> None:
    data = printed(capsys, "-s", "none", "--engine", "torch", "--processes", "2")
    (peer,) = data["peers"]
    assert [sample["process"] for sample in peer["passes"]["counted"]] == [0, 1]


@NEEDS_TORCH
@pytest.mark.slow
def test_a_wrong_gradient_of_a_peer_ends_with_five(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's sigmoid made a little larger: loss and gradients move by more than rounding."""
    import torch

    sigmoid = torch.sigmoid
    monkeypatch.setattr(torch, "sigmoid", lambda p: sigmoid(p) * 1.0001)
    arguments = ["run", *SMALL, "-s", "none", "--engine", "torch", "--json"]
    assert run_command(arguments) == 5
    captured = capsys.readouterr()
    assert not json.loads(captured.out)["peers"][0]["agreement"]["agrees"]
    assert "torch none: differs from ckpt by" in captured.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engine", "touch"), "unknown engine `touch`\n\nhint: did you mean `torch`?"),
        pytest.param(
            ("--engine", "torch", "--workload", "graph:{file}"),
            "engine `torch` runs the workload silu, not `graph`\n\nhint: leave out --workload, or",
            marks=NEEDS_TORCH,
        ),
        pytest.param(
            ("--engine", "jax", "--engine", "torch", "--workload", "trg"),
            "the workload silu, not `trg`\n\nhint: engines that run it: jax, jax-eager, jax-scan\n",
            marks=[NEEDS_TORCH, NEEDS_JAX],
        ),
    ],
)
def test_what_cannot_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    file = tmp_path / "g.json"
    file.write_text('{"ops": [{"op": "leaf", "req": true, "data": [1]}, {"op": "sin", "in": [0]}]}')
    filled = [argument.format(file=file) for argument in arguments]
    assert run_command(["run", *filled]) == 2
    assert words in capsys.readouterr().err


def test_times_of_two_devices_are_not_compared() -> None:
    class OnDevice(NumpyBackend):
        label = "Cupy(Cuda(0))"
        is_cpu = False

    class Engine(TorchEngine):
        """Never asked for anything: PyTorch is not imported."""

    with pytest.raises(UsageError, match=r"runs on the CPU, ckpt on Cupy\(Cuda\(0\)\)"):
        check_peers([Engine()], SiluWorkload(1, 1), OnDevice())
    with pytest.raises(UsageError, match="in float32 or float64, not in bfloat16"):
        check_peers([Engine()], SiluWorkload(1, 1, dtype="bfloat16"), NumpyBackend())
    check_peers([Engine()], SiluWorkload(1, 1), NumpyBackend())


# In a process of its own.


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, **variables}


@pytest.fixture
def shadowed(tmp_path: Path) -> dict[str, str]:
    """An environment in which neither library can be imported."""
    for name in ("torch", "jax"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name} here')\n")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    return environment(PYTHONPATH=os.pathsep.join(paths))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_missing_library_is_named_with_its_install_line(
    engine: str, shadowed: dict[str, str]
) -> None:
    done = subprocess.run(
        [*CKPT, "run", *SMALL, "--engine", engine], capture_output=True, text=True, env=shadowed
    )
    library = engine.partition("-")[0]
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no {library} here" in done.stderr
    assert f"pip install 'ckptcli[{library}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_without_an_engine_neither_library_is_imported(shadowed: dict[str, str]) -> None:
    for engine in ([], ["--engine", "ckpt"]):
        done = subprocess.run(
            [*CKPT, "run", *SMALL, "-q", "--json", *engine],
            capture_output=True,
            text=True,
            env=shadowed,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["peers"] == []


def test_an_engine_whose_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingLibraryError, match="engine `jax` needs jax"):
        open_engines(["jax"])


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "row"),
    [("p", "6 sigmoid"), ("h", "6 matmul, 6 sigmoid"), ("s", "6 matmul, 6 sigmoid")],
)
def test_jaxs_table_comes_out_of_the_command(name: str, row: str) -> None:
    strategy = f"{ONE_REGION},policy=save_only_these_names({name})"
    arguments = ["-l", "6", "-n", "8", "--reps", "1", "-s", strategy, "--no-reference"]
    done = subprocess.run(
        [*CKPT, "run", *arguments, "--engine", "jax"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"jax {strategy} (JAX " in done.stdout
    assert f"\n  recomputes {row}\n" in done.stdout


@pytest.mark.slow
@NEEDS_TORCH
def test_pytorch_runs_beside_ckpt_on_pytorch(capsys: pytest.CaptureFixture[str]) -> None:
    """ckpt's own backend turns PyTorch's autograd off, which its engine needs."""
    chosen = ("-s", "none", "-s", "remat", "--backend", "torch", "--engine", "torch")
    data = printed(capsys, *chosen, "--threads", "1")
    assert [peer["agreement"]["agrees"] for peer in data["peers"]] == [True, True]
