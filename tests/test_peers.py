"""The same network in PyTorch and JAX: gradients, what is held and computed again, the record."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from ckptcli.autodiff.device import device
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import MissingLibraryError, UnknownNameError, UsageError
from ckptcli.measure.peer_record import Agreement, PeerMemory, PeerRecord, PeerSample
from ckptcli.measure.record_json import read_record, record_json, record_object
from ckptcli.measure.record_types import first_mismatch
from ckptcli.peers.agreement import TOLERANCES, agreement, distance
from ckptcli.peers.base import (
    NoPeer,
    PeerNetwork,
    Values,
    engines,
    open_engines,
    regions_of,
)
from ckptcli.peers.torch_engine import TorchEngine
from ckptcli.profiling.peer_passes import check_peers, own_values
from ckptcli.report.console import Screen, render_run
from ckptcli.report.formats import registry
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import ENGINES, INSTALLED_ENGINES, NEEDS_JAX, NEEDS_TORCH
from tests.records import balanced_record, none_record, run_record

CKPT = [sys.executable, "-m", "ckptcli"]
VALIDATOR = Draft202012Validator(
    json.loads((files("ckptcli.measure") / "schema" / "run-1.json").read_text(encoding="utf-8"))
)
ONE_REGION = "remat:every=6"


def network(engine: str, workload: SiluWorkload, strategy: str) -> PeerNetwork:
    (opened,) = open_engines([engine])
    regions = regions_of(parse_strategy(strategy), workload.layers)
    return opened.network(workload, regions)


def counted(engine: str, strategy: str, layers: int = 6) -> tuple[int, int, int]:
    """Tensors saved, matrix products and sigmoids computed again."""
    found = network(engine, SiluWorkload(layers, 16), strategy).measure()
    again = found.recomputed_by_op or {}
    assert found.memory.saved_bytes == found.memory.saved_tensors * 16 * 16 * 4
    return found.memory.saved_tensors, again.get("matmul", 0), again.get("sigmoid", 0)


# Gradients.


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("engine", INSTALLED_ENGINES)
@pytest.mark.parametrize(
    ("layers", "n", "batch", "strategy"),
    [
        (8, 64, 64, "none"),
        (8, 64, 64, "remat"),
        (8, 64, 64, "remat:every=3,policy=dots_saveable,last=plain"),
        (8, 64, 64, "sqrt"),
        (3, 5, 7, "segments:2"),
        (3, 5, 7, "remat:policy=everything_saveable"),
        (1, 1, 1, "none"),
    ],
)
def test_loss_and_gradients_agree(
    engine: str, dtype: str, layers: int, n: int, batch: int, strategy: str
) -> None:
    workload = SiluWorkload(layers, n, batch, dtype)
    peer = network(engine, workload, strategy)
    for _ in range(2):  # a second pass finds nothing of the first
        found = peer.values(peer.backward(peer.forward()))
        known = agreement(own_values(workload, device()), found, dtype, peer.tolerance)
        assert known.agrees, known
        assert known.tolerance == {"float32": 1e-5, "float64": 1e-12}[dtype]
        assert {gradient.dtype for gradient in found.gradients} == {np.dtype(dtype)}


@pytest.mark.slow
@pytest.mark.parametrize("engine", INSTALLED_ENGINES)
def test_a_gradient_of_another_network_does_not_agree(engine: str) -> None:
    workload, other = SiluWorkload(3, 16), SiluWorkload(3, 16)
    weights, x = workload.arrays
    other.arrays = ([weights[0], weights[1] * 1.001, weights[2]], x)
    peer = network(engine, other, "none")
    found = peer.values(peer.backward(peer.forward()))
    assert not agreement(own_values(workload, device()), found, "float32", 1e-5).agrees


def test_the_distance_is_in_shares_and_spacings_of_the_largest_element() -> None:
    expected = np.array([1.0, -1024.0, 1e-6], dtype="float32")
    found = expected + np.array([0.0, 0.0, 2.0**-13], dtype="float32")
    relative, ulp = distance(expected, found)
    assert math.isclose(relative, 2.0**-13 / 1024.0, rel_tol=1e-3)
    assert math.isclose(ulp, 1.0, rel_tol=1e-3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_agrees_with_itself_alone(value: float) -> None:
    finite, other = np.array([1.0, 2.0]), np.array([1.0, value])
    assert distance(other, other.copy()) == (0.0, 0.0)
    assert distance(finite, other) == (math.inf, math.inf)
    assert distance(other, finite) == (math.inf, math.inf)
    good, bad, lost = Values(1.0, [finite]), Values(1.0, [other]), Values(value, [finite])
    assert not agreement(good, bad, "float64", TOLERANCES["float64"]).agrees
    assert not agreement(lost, good, "float64", TOLERANCES["float64"]).agrees


def test_gradients_of_another_shape_do_not_agree() -> None:
    assert distance(np.ones(2), np.ones(3)) == (math.inf, math.inf)
    assert distance(np.zeros(2), np.ones(2))[0] == math.inf


# What is held and computed again.


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jax", "jax-eager"])
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (f"{ONE_REGION},policy=save_only_these_names(p)", (6, 0, 6)),
        (f"{ONE_REGION},policy=save_only_these_names(h)", (5, 6, 6)),
        (f"{ONE_REGION},policy=save_only_these_names(s)", (6, 6, 6)),
        (f"{ONE_REGION},policy=dots_saveable", (6, 0, 6)),
        (f"{ONE_REGION},policy=dots_with_no_batch_dims_saveable", (6, 0, 6)),
        (ONE_REGION, (0, 6, 6)),
        ("segments:1", (0, 6, 6)),
        ("remat", (5, 6, 6)),
        ("sqrt", (1, 6, 6)),
        ("none", (4 * 6 - 1, 0, 0)),
        (f"{ONE_REGION},policy=everything_saveable", (4 * 6 - 1, 0, 0)),
        (f"{ONE_REGION},policy=save_any_names_but_these(s)", (6 + 5, 0, 6)),
        (
            f"{ONE_REGION},policy=save_from_both_policies(dots_saveable,save_only_these_names(h))",
            (6 + 5, 0, 6),
        ),
    ],
)
def test_jaxs_table_of_six_layers(
    engine: str, strategy: str, expected: tuple[int, int, int]
) -> None:
    """Names and dots: the table in JAX's own terms. `none` holds a factor of each derivative."""
    assert counted(engine, strategy) == expected


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("none", (3 * 6 - 1, 0, 0)),  # p, s and h of each layer, the last h aside
        ("remat", (5, 6, 6)),
        ("remat:every=2", (2, 6, 6)),
        (ONE_REGION, (0, 6, 6)),
        (f"{ONE_REGION},policy=dots_saveable", (6, 0, 6)),
        ("remat:policy=dots_saveable", (5 + 6, 0, 6)),
        (f"{ONE_REGION},policy=everything_saveable", (3 * 6, 0, 0)),
        ("remat:every=3,last=plain", (1 + 3 * 3 - 1, 3, 3)),
        (
            f"{ONE_REGION},policy=save_from_both_policies(dots_saveable,nothing_saveable)",
            (6, 0, 6),
        ),
        (
            f"{ONE_REGION},policy=save_from_both_policies(everything_saveable,dots_saveable)",
            (3 * 6, 0, 0),
        ),
    ],
)
def test_what_pytorch_holds(strategy: str, expected: tuple[int, int, int]) -> None:
    assert counted("torch", strategy) == expected


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2, 8])
def test_pytorch_holds_what_its_hooks_say(layers: int) -> None:
    """An account of live storages, against what autograd says it packs."""
    import torch

    workload = SiluWorkload(layers, 16)
    peer: Any = network("torch", workload, "none")
    packed: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        packed[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = peer.forward()
    for tensor in (*peer.weights, peer.x):
        packed.pop(tensor.untyped_storage().data_ptr(), None)
    del loss
    memory = peer.measure().memory
    assert (memory.saved_tensors, memory.saved_bytes) == (len(packed), sum(packed.values()))
    assert memory.saved_tensors == 3 * layers - 1


@NEEDS_TORCH
@pytest.mark.slow
def test_pytorchs_peak_is_that_of_its_steps() -> None:
    """8 layers: 9 leaves, 23 saved, and both gradients of the last p * s."""
    peak = network("torch", SiluWorkload(8, 64), "none").measure().memory.peak_bytes
    assert peak is not None
    assert round(peak / (64 * 64 * 4), 2) == 9 + 23 + 2


# Names.


def test_only_names_that_exist() -> None:
    assert list(engines()) == ["jax", "jax-eager", "torch"]
    with pytest.raises(UnknownNameError, match="unknown engine `touch`"):
        open_engines(["touch"])


@pytest.mark.parametrize("name", ["balanced"])
def test_what_decides_op_by_op_has_no_peer(name: str) -> None:
    with pytest.raises(NoPeer, match="op by op"):
        regions_of(parse_strategy(name), 6)


@pytest.mark.parametrize(
    "policy",
    [
        "offload_dot_with_no_batch_dims",
        "save_and_offload_only_these_names(s|p)",
        "save_from_both_policies(dots_saveable,offload_dot_with_no_batch_dims)",
    ],
)
def test_what_is_moved_to_the_host_has_no_peer_on_a_cpu(policy: str) -> None:
    with pytest.raises(NoPeer, match="on a CPU the library moves nothing to the host"):
        regions_of(parse_strategy(f"remat:policy={policy}"), 6)


@NEEDS_TORCH
@pytest.mark.slow
def test_pytorch_knows_no_names() -> None:
    with pytest.raises(NoPeer, match="knows no names"):
        network("torch", SiluWorkload(2, 4), "remat:names=p")


@pytest.mark.slow
@pytest.mark.parametrize("engine", INSTALLED_ENGINES[:2])
def test_a_policy_of_ones_own_has_no_peer(engine: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def products(value):\n    return value.op == 'matmul'\n")
    with pytest.raises(NoPeer, match="a function of ckpt's values"):
        network(engine, SiluWorkload(2, 4), f"remat:policy={tmp_path}/mine.py:products")


# The record.

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


# The command.

SMALL = ("--layers", "3", "--n", "8", "--reps", "2")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run_command(["run", *SMALL, *arguments, "--json", "-q"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    VALIDATOR.validate(found)
    return found


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
    assert [entry["strategy"] for entry in data["strategies"]] == names
    found = {(peer["engine"], peer["strategy"]): peer for peer in data["peers"]}
    assert list(found) == [(engine, name) for engine in ENGINES for name in names]
    without = {key for key, peer in found.items() if peer["reason"] is not None}
    assert without == {("torch", "remat:names=p"), *((engine, "balanced") for engine in ENGINES)}
    for key, peer in found.items():
        assert (peer["memory"] is None) == (peer["agreement"] is None) == (key in without)
        assert len(peer["total_s"]["samples"]) == (0 if key in without else 2)
        assert len(peer["forward_s"]["samples"]) == (0 if key in without or key[0] == "jax" else 2)
        assert (peer["compile_s"] is None) == (key in without or key[0] != "jax")
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
            "the workload silu, not `trg`\n\nhint: engines that run it: jax, jax-eager\n",
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
    arguments = ["-l", "6", "-n", "8", "--reps", "1", "-s", strategy, "--no-reference", "-q"]
    done = subprocess.run(
        [*CKPT, "run", *arguments, "--engine", "jax"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"jax {strategy} (JAX " in done.stdout
    assert f"\n  recomputes {row}\n  loss within" in done.stdout
