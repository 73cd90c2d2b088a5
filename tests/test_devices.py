"""`--backend`, `--device`, `--dtype` and `ckpt backends`: what runs where, and what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli.backends import open_backend, registry
from ckptcli.backends.base import Backend
from ckptcli.backends.libraries.cupy_library import CupyLibrary
from ckptcli.backends.memory import MemoryAccount, PeakReading, UseReading
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.registry import ArrayLibrary, DeviceFacts
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli import devices
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.measure import memory as measured
from ckptcli.measure.machine import memory_bytes
from ckptcli.measure.record_json import read_record, record_json
from ckptcli.measure.rounds import Plan
from ckptcli.profiling.profile import profile
from ckptcli.report.console import Screen, render_run
from ckptcli.report.run_table import command_line
from ckptcli.report.surroundings import machine_line
from ckptcli.verify.check import check
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import NEEDS_TORCH
from tests.records import balanced_record, none_record, run_record
from tests.test_cli import Command, ckpt as ckpt
from tests.wavering_backend import Wavering

TINY = ("--layers", "2", "--n", "8")
EXAMPLES = Path(__file__).parent.parent / "examples"
ON_TORCH = ("--backend", "torch", *TINY)


class TwoGpus(ArrayLibrary):
    """A library with a processor and two GPUs, which compute as NumPy does."""

    name = "fake"
    title = "Fake"
    packages = ("numpy",)
    install = "pip install fake"
    device_names = ("cpu", "cuda")

    def devices(self) -> Sequence[DeviceFacts]:
        return [
            DeviceFacts("cpu"),
            DeviceFacts("cuda:0", "Example GPU", 8 * 2**30, is_gpu=True),
            DeviceFacts("cuda:1", "Example GPU", 8 * 2**30, is_gpu=True),
        ]

    def open(self, device: str) -> Backend:
        backend = FakeGpu()
        backend.label = f"Fake({device})"
        return backend


class FakeMemory(MemoryAccount):
    """An allocator that rounds up to 512 bytes, in the middle of nowhere."""

    def __init__(self) -> None:
        self.phases = 0

    def start_phase(self) -> None:
        self.phases += 1

    def peak(self) -> PeakReading:
        return PeakReading(1000 * self.phases, 1024 * self.phases, None)


class FakeGpu(NumpyBackend):
    """NumPy that waits, has an allocator, and a clock of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = FakeMemory()
        self.sees_kernel_memory = False
        self.ticks = 0

    def clock(self) -> Any:
        def tick() -> float:
            self.ticks += 1
            return self.ticks * 0.25

        return tick


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._LIBRARIES, "fake", TwoGpus())


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (None, "cpu"),
        ("cpu", "cpu"),
        ("cuda", "cuda:0"),
        ("cuda:1", "cuda:1"),
        ("auto", "cuda:0"),
    ],
)
def test_the_device_that_is_taken(asked: str | None, taken: str) -> None:
    assert open_backend("fake", asked).label == f"Fake({taken})"


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("asked", ["cuda:2", "mps", "tpu", "cuda:x"])
def test_a_device_that_there_is_not_names_those_there_are(asked: str) -> None:
    with pytest.raises(UsageError, match="there are: cpu, cuda:0, cuda:1"):
        open_backend("fake", asked)


@pytest.mark.usefixtures("two_gpus")
def test_auto_says_what_it_takes(ckpt: Command) -> None:
    done = ckpt("log", "--backend", "fake", "--device", "auto")
    assert (done.code, done.err) == (0, "note: --device auto takes Fake(cuda:0)\n")
    assert ckpt("log", "--backend", "fake", "--device", "auto", "-q").err == ""


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.slow
def test_a_device_without_a_backend_is_that_of_whichever_library_has_it(ckpt: Command) -> None:
    for device, taken in (("auto", "cuda:0"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")):
        done = ckpt("log", "--device", device, "-l", "1", "-n", "4")
        assert (done.code, done.err) == (0, f"note: --device {device} takes Fake({taken})\n")
    for words in (("--device", "cpu"), ()):
        assert ckpt("log", *words, "-l", "1", "-n", "4").err == ""
    done = ckpt("log", "--backend", "numpy", "--device", "auto", "-l", "1", "-n", "4")
    assert (done.code, done.err) == (0, "note: --device auto takes Numpy(Cpu)\n")
    assert "--device auto takes --backend fake --device cuda:0" in ckpt("backends").out
    assert json.loads(ckpt("backends", "--json").out)["auto"] == {
        "backend": "fake",
        "device": "cuda:0",
    }


def test_auto_is_the_processor_where_no_library_sees_a_gpu(
    ckpt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_devices", lambda library: [registry.processor()])
    done = ckpt("log", "--device", "auto", "-l", "1", "-n", "4")
    assert (done.code, done.err) == (0, "note: --device auto takes Numpy(Cpu)\n")


@pytest.mark.parametrize("command", ["run", "check", "saved", "log"])
@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (("--backend", "jax"), "unknown backend `jax`", "known: cupy, numpy, torch"),
        (("--backend", "numy"), "unknown backend `numy`", "did you mean `numpy`?"),
        (("--device", "tpu"), "no array library here has a device `tpu`", "there are: cpu"),
        (
            ("--device", "tpu", "--backend", "numpy"),
            "backend `numpy` has no device `tpu`",
            "without --backend the library is taken that has it",
        ),
        (("--dtype", "bfloat16"), "dtype `bfloat16` on Numpy(Cpu)", "float32 or float64"),
    ],
)
def test_what_there_is_not_is_exit_2(
    ckpt: Command, command: str, options: tuple[str, ...], message: str, hint: str
) -> None:
    done = ckpt(command, *TINY, *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert hint in done.err


def test_a_library_that_is_not_installed_is_exit_2_with_the_install_line(
    ckpt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CupyLibrary, "packages", ("no-such-distribution",))
    done = ckpt("run", "--backend", "cupy")
    assert (done.code, done.out) == (2, "")
    assert "backend `cupy` needs CuPy, which is not installed" in done.err
    assert "hint: pip install 'ckptcli[cuda]'" in done.err


def test_a_library_that_cannot_be_loaded_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metadata is there and its module is not, as after a broken installation."""
    monkeypatch.setattr(CupyLibrary, "packages", ("numpy",))
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "ckptcli.backends.cupy_backend", raising=False)
    with pytest.raises(UsageError, match="CuPy cannot be loaded"):
        open_backend("cupy")
    with pytest.raises(UnknownNameError):
        open_backend("")


@pytest.fixture
def broken_torch(tmp_path: Path) -> dict[str, str]:
    """An environment in which PyTorch is installed and misses a library of CUDA's."""
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open')\n")
    metadata = tmp_path / "torch-2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.0\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, EXAMPLES.parent)))}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("log", "--backend", "torch"), "backend `torch`: PyTorch cannot be loaded: libcudart"),
        (("log", "--backend", "torch", "--device", "auto"), "PyTorch cannot be loaded: libcudart"),
        (("run", "--engine", "torch"), "needs torch, which cannot be imported: libcudart"),
    ],
)
def test_a_library_that_misses_a_library_is_told(
    broken_torch: dict[str, str], options: tuple[str, ...], message: str
) -> None:
    command = [sys.executable, "-m", "ckptcli", *options, *TINY]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=broken_torch)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "hint: pip install 'ckptcli[torch]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.slow
def test_a_profile_on_a_device_has_its_clock_and_its_allocators_figures() -> None:
    record = profile(SiluWorkload(2, 8), ["none"], backend=open_backend("fake", "cuda:1"))
    (entry,) = record.rows
    assert entry.device == "Device<Autodiff { device: Fake(cuda:1), checkpointing: Disabled }>"
    assert {sample.forward_s for sample in entry.samples} == {0.25}
    assert entry.memory.allocator_forward is not None
    assert entry.memory.allocator_backward is not None
    assert entry.memory.allocator_forward.allocated_bytes == 1024
    assert entry.memory.allocator_backward.allocated_bytes == 2048
    assert entry.memory.traced_peak_backward_bytes is None
    text = render_run(record, Screen(width=300))
    assert "workspace of kernels n/a" in text
    assert "the allocator's peak: requested 2.0 KiB, allocated 2.0 KiB, reserved n/a" in text


class FakeUse(MemoryAccount):
    """An allocator that keeps no peaks, as Apple's."""

    def __init__(self) -> None:
        self.phases = 0

    def start_phase(self) -> None:
        self.phases += 1

    def peak(self) -> None:
        return None

    def use(self) -> UseReading:
        return UseReading(1024 * self.phases, 4096)


@pytest.mark.usefixtures("two_gpus")
def test_an_allocator_without_peaks_tells_what_is_in_use_after_each_phase() -> None:
    backend = open_backend("fake", "cuda:1")
    backend.memory = FakeUse()
    record = profile(SiluWorkload(1, 8), ["none"], backend=backend, plan=Plan(reps=1, warmup=0))
    memory = record.rows[0].memory
    assert memory.allocator_forward is memory.allocator_backward is None
    assert memory.allocator_after_forward == measured.AllocatorUse(1024, 4096)
    assert memory.allocator_after_backward == measured.AllocatorUse(2048, 4096)
    assert read_record(record_json(record), "") == record
    text = render_run(record, Screen(width=300))
    assert "it has 1.0 KiB in use after forward and 2.0 KiB after backward, of 4.0 KiB" in text


def test_the_trg_says_why_a_device_without_float64_does_not_have_it(
    ckpt: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(devices, "open_backend", lambda name, device: WithoutDouble())
    for command in ("run", "check", "saved", "log"):
        done = ckpt(command, "--workload", "trg", "--steps", "2")
        assert done.code == 2
        assert "workload `trg` computes in float64, which Numpy(Cpu) does not have" in done.err
        assert "use --dtype float32, or --device cpu" in done.err
    assert ckpt("saved", "--workload", "trg", "--steps", "2", "--dtype", "float32").code == 0
    graph = tmp_path / "g.json"
    graph.write_text(
        '{"ops": [{"op": "leaf", "req": true, "data": [1]}, {"op": "exp", "in": [0]}]}'
    )
    done = ckpt("log", "--workload", f"graph:{graph}")
    assert (done.code, "hint: use --device cpu" in done.err) == (2, True)


def test_check_measures_the_spread_of_a_library_that_is_not_deterministic() -> None:
    workload, precise = SiluWorkload(3, 8), SiluWorkload(3, 8, dtype="float64")
    found = check(workload, parse_strategy("balanced"), precise, backend=Wavering(1e-6))
    assert found.spread is not None
    assert 1e-8 < found.spread < 1e-4
    assert (found.wrong_gradients, found.wrong_values) == ((), ())
    steady = check(workload, parse_strategy("balanced"), precise)
    assert (steady.spread, steady.passed) == (None, True)


def test_check_still_finds_what_lies_beyond_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Wavering(1e-9)
    exact = backend.namespace.sigmoid
    calls = 0

    def drifting(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return exact(x) * (1.01 if calls == 8 else 1.0)

    monkeypatch.setattr(type(backend.namespace), "sigmoid", staticmethod(drifting), raising=False)
    workload, precise = SiluWorkload(2, 8), SiluWorkload(2, 8, dtype="float64")
    found = check(workload, parse_strategy("balanced"), precise, backend=backend)
    assert not found.passed


class WithoutDouble(NumpyBackend):
    """A device that has no float64, such as Apple's GPU."""

    dtypes = ("float32",)


def test_check_takes_finite_differences_in_numpy_where_there_is_no_float64(
    ckpt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "open_backend", lambda name, device: WithoutDouble())
    done = ckpt("check", *TINY)
    assert done.code == 0
    assert "finite differences  in NumPy, since the device has no float64" in done.out
    assert done.out.count(": agrees") >= 1
    assert "2 of 2 are `none`'s, bit for bit" in done.out
    refused = ckpt("check", *TINY, "--dtype", "float64")
    assert refused.code == 2
    assert "dtype `float64` on Numpy(Cpu)" in refused.err


@pytest.mark.slow
def test_a_profile_tells_bits_that_vary_from_a_wrong_gradient() -> None:
    record = profile(SiluWorkload(3, 8), backend=Wavering(1e-6), plan=Plan(reps=1, warmup=0))
    none, balanced = record.rows
    assert none.outcome.grad_sha256 != balanced.outcome.grad_sha256
    assert balanced.outcome.grad_within_spread
    assert balanced.judgement is not None
    assert balanced.judgement.word == "effective"
    assert "gradients within run-to-run spread" in render_run(record, Screen())
    assert read_record(record_json(record), "it") == record


@pytest.mark.slow
def test_ckpt_backends_lists_every_library(ckpt: Command) -> None:
    done = ckpt("backends", "--json")
    assert (done.code, done.err) == (0, "")
    found = {entry["name"]: entry for entry in json.loads(done.out)["backends"]}
    assert list(found) == ["numpy", "cupy", "torch"]
    assert found["numpy"]["version"] == np.__version__
    (processor,) = found["numpy"]["devices"]
    assert (processor["name"], processor["memory_bytes"]) == ("cpu", memory_bytes())
    assert found["numpy"]["dtypes"] == ["float32", "float64"]
    for entry in found.values():
        assert (entry["missing"] is None) == bool(entry["devices"])
    text = ckpt("backends").out
    assert f"numpy: NumPy {np.__version__}" in text
    for entry in found.values():
        assert (f"install: {entry['install']}" in text) == (entry["version"] is None)


@NEEDS_TORCH
@pytest.mark.slow
def test_every_command_runs_on_torch(ckpt: Command) -> None:
    done = ckpt("run", *ON_TORCH, "--reps", "2", "--threads", "1", "--json")
    assert done.code == 0
    record = read_record(done.out, "stdout")
    assert (record.device, record.partial) == ("Torch(Cpu)", False)
    assert record.library.startswith("PyTorch ")
    assert record.library in machine_line(record)
    none, balanced = record.rows
    assert none.outcome.grad_sha256 == balanced.outcome.grad_sha256
    on_numpy = read_record(ckpt("run", *TINY, "--reps", "2", "--json").out, "stdout")
    for ours, theirs in zip(record.rows, on_numpy.rows):
        assert ours.memory.saved_bytes == theirs.memory.saved_bytes
        assert ours.outcome.recomputed_by_op == theirs.outcome.recomputed_by_op
        assert ours.outcome.loss == pytest.approx(theirs.outcome.loss, rel=1e-5)
    assert ckpt("log", *ON_TORCH).out == ckpt("log", *TINY).out
    checked = ckpt("check", *ON_TORCH)
    assert (checked.code, checked.out.count("agrees")) == (0, 4)
    assert "bit for bit" in checked.out
    held = json.loads(ckpt("saved", *ON_TORCH, "--json").out)["strategies"]
    assert [entry["saved_tensors"] for entry in held] == [5, 2]


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_program_of_the_users_runs_on_torch(ckpt: Command, dtype: str) -> None:
    """Its first run is on the host, which has no bfloat16."""
    program = f"{EXAMPLES / 'recurrent.py'}:make"
    options = ("--workload", program, "--backend", "torch", "--threads", "1", "--dtype", dtype)
    done = ckpt("run", *options, "--reps", "1", "--json")
    assert done.code == 0
    record = read_record(done.out, "stdout")
    assert {node.dtype for node in record.rows[0].trace.nodes} == {dtype}
    assert record.rows[1].judgement is not None
    assert record.rows[1].judgement.word != "wrong"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"backend_name": "torch", "device_name": "cuda:1"}, "--backend torch --device cuda:1 "),
        ({"backend_name": "cupy", "device_name": None}, "--backend cupy "),
        ({"backend_name": "numpy", "device_name": None}, ""),
        ({}, ""),
    ],
)
def test_the_backend_in_the_command_that_measures_again(
    config: dict[str, object], words: str
) -> None:
    record = run_record(none_record(), balanced_record(), config=config)
    assert f"--dtype float32 --seed 0 {words}--reps" in (command_line(record) or "")


@NEEDS_TORCH
@pytest.mark.slow
def test_the_command_that_measures_again_names_the_backend(ckpt: Command) -> None:
    done = ckpt("run", *ON_TORCH, "--device", "cpu", "--reps", "1", "--json")
    record = read_record(done.out, "stdout")
    assert "--backend torch --device cpu" in (command_line(record) or "")
    plain = read_record(ckpt("run", *TINY, "--reps", "1", "--json").out, "stdout")
    assert "--backend" not in (command_line(plain) or "")


@NEEDS_TORCH
@pytest.mark.slow
def test_measuring_processes_get_the_backend(ckpt: Command) -> None:
    done = ckpt("run", *ON_TORCH, "--reps", "2", "--processes", "2", "--threads", "1", "--json")
    assert done.code == 0
    record = read_record(done.out, "stdout")
    assert (record.device, record.processes) == ("Torch(Cpu)", 2)


@NEEDS_TORCH
@pytest.mark.slow
def test_settings_choose_the_backend(ckpt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKPT_BACKEND", "torch")
    record = json.loads(ckpt("run", *TINY, "--reps", "1", "--json").out)
    assert record["device"] == "Torch(Cpu)"
    assert ckpt("run", *TINY, "--backend", "numpy", "--reps", "1", "--json").code == 0


@NEEDS_TORCH
@pytest.mark.slow
def test_float16_that_overflows_says_so(ckpt: Command) -> None:
    small = ckpt("run", *ON_TORCH, "--dtype", "float16", "--reps", "1", "--json")
    record = json.loads(small.out)
    assert np.isfinite(record["strategies"][0]["loss"])
    assert not any("float16 ends at" in warning for warning in record["warnings"])
    rows = ("--batch", "300000", "--layers", "1", "--n", "8")
    large = ckpt("run", "--backend", "torch", "--dtype", "float16", *rows, "--reps", "1", "--json")
    record = json.loads(large.out)
    assert record["strategies"][0]["loss"] is None
    assert any("the loss is inf: float16 ends at 65504" in text for text in record["warnings"])


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_torch_is_loaded_only_when_it_is_asked_for(backend: str) -> None:
    arguments = ["run", *TINY, "--reps", "1", "--backend", backend, "-q"]
    program = (
        "import sys\n"
        "from ckptcli.cli.main import run_command\n"
        f"code = run_command({arguments!r})\n"
        f"loaded = 'torch' in sys.modules\n"
        f"sys.exit(code or loaded != {backend == 'torch'})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
