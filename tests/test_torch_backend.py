"""PyTorch as an array library: Burn's logs, NumPy's values, bits equal across strategies."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Plan, device, profile
from ckptcli.backends import numpy_namespace, open_backend
from ckptcli.backends.base import AcceleratorFacts
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.memory import PeakReading, UseReading
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import DtypeError, ShapeError
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import NEEDS_TORCH, check_outcomes_of_numpy, pass_outcome, torch_device
from tests.gradient_cases import CASES
from tests.helpers import STRATEGIES, backward, log_lines, recomputed, same_bits
from tests.recorded_programs import RECORDED, programs

pytestmark = [NEEDS_TORCH, pytest.mark.slow]

torch: Any = None
torch_backend: Any = None


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    """Loaded when a test of this file runs: collecting takes no second for PyTorch."""
    global torch, torch_backend
    torch = importlib.import_module("torch")
    torch_backend = importlib.import_module("ckptcli.backends.torch_backend")


def test_the_namespace_supplies_every_function() -> None:
    namespace = torch_device().namespace
    ours = {
        name
        for name, value in vars(numpy_namespace).items()
        if callable(value) and not name.startswith("_") and not inspect.isclass(value)
    }
    missing = {
        name for name in ours - {"Any", "AnyArray", "NDArray"} if not hasattr(namespace, name)
    }
    assert missing == set()


@pytest.mark.parametrize("index", range(len(RECORDED)))
def test_log_and_gradients_are_those_that_burn_recorded(index: int) -> None:
    recorded = RECORDED[index]
    events, gradients = pass_outcome(torch_device(), recorded["strategy"], programs()[index].load)
    assert log_lines(events) == recorded["log"]
    assert gradients.keys() == recorded["grads"].keys()
    for name, expected in recorded["grads"].items():
        np.testing.assert_allclose(gradients[name].ravel(), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("index", range(0, len(RECORDED), 2))
def test_strategies_agree_bit_for_bit(index: int) -> None:
    program = programs()[index]
    _, none = pass_outcome(torch_device(), "none", program.load)
    _, balanced = pass_outcome(torch_device(), "balanced", program.load)
    assert none.keys() == balanced.keys()
    assert same_bits(none.values(), balanced.values())


@pytest.mark.parametrize("name", CASES)
def test_an_op_has_numpys_log_value_and_gradients(name: str) -> None:
    check_outcomes_of_numpy(name, torch_device)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("strategy", ["balanced", "remat", "remat:every=3,names=p", "sqrt"])
def test_strategies_agree_bit_for_bit_on_the_silu_network(strategy: str, dtype: str) -> None:
    workload = SiluWorkload(6, 48, dtype=dtype)
    _, expected = pass_outcome(torch_device(), "none", workload.load)
    events, found = pass_outcome(torch_device(), strategy, workload.load)
    assert same_bits(expected.values(), found.values())
    assert recomputed(events)
    assert all(np.isfinite(array).all() for array in found.values())


def accounted(strategy: str) -> tuple[Device, Ledger]:
    ledger = Ledger()
    base = torch_device()
    dev = base.autodiff().gradient_checkpointing(parse_strategy(strategy))
    return dev.watched_by(None, TrackedBackend(base.backend, ledger)), ledger


@pytest.mark.usefixtures("no_collector")
def test_the_ledger_counts_a_view_with_its_base() -> None:
    dev, ledger = accounted("none")
    x = dev.tensor(np.zeros((4, 8)))
    view = x.transpose().reshape([8, 4])[1:3]
    copies = ledger.bytes_in_use
    del x
    assert ledger.bytes_in_use in (256, copies)
    y = dev.tensor(np.zeros((4, 8)))
    part = y.transpose()[1:3]
    before = ledger.bytes_in_use
    del y
    assert ledger.bytes_in_use == before
    del view, part
    assert (ledger.bytes_in_use, ledger.live_by_id()) == (0, {})


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    ("strategy", "held", "peak"), [("none", 23, 24), ("balanced", 8, 11)], ids=STRATEGIES
)
def test_the_ledger_of_the_silu_network_is_numpys(strategy: str, held: int, peak: int) -> None:
    n, layers = 64, 8
    tensor_bytes = n * n * 4
    dev, ledger = accounted(strategy)
    network = SiluWorkload(layers, n).load(dev)
    base = ledger.bytes_in_use
    assert base == (layers + 1) * tensor_bytes
    root = network.forward().root
    assert ledger.bytes_in_use - base - root.value.nbytes == held * tensor_bytes
    ledger.start_phase()
    gradients = backward(root)
    assert 0 <= ledger.peak.live_bytes - base - peak * tensor_bytes < 1024
    assert ledger.bytes_in_use - base - root.value.nbytes == len(gradients) * tensor_bytes
    del root, gradients
    assert ledger.bytes_in_use == base


def test_a_tensor_that_comes_in_brings_no_autograd() -> None:
    own = torch.ones(3, requires_grad=True)
    dev = torch_device().autodiff()
    x = dev.tensor(own, copy=False).require_grad()
    y = (x * x).sum()
    assert not y.value.requires_grad
    assert list(backward(y).wrt(x).numpy()) == [2.0, 2.0, 2.0]  # type: ignore[union-attr]
    assert own.grad is None


def test_what_comes_in_is_copied_unless_asked_otherwise() -> None:
    array = np.ones(3, np.float32)
    dev = torch_device()
    copied, shared = dev.tensor(array), dev.tensor(array, copy=False)
    array[0] = 7.0
    assert (copied.numpy()[0], shared.numpy()[0]) == (1.0, 7.0)
    own = torch.ones(2)
    tensor = dev.tensor(own)
    own[0] = 7.0
    assert tensor.numpy()[0] == 1.0


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([1, 2], None, "float32"),
        (np.ones(2, np.float64), None, "float64"),
        (np.ones(2, np.int64), None, "float32"),
        ([1.0], "float16", "float16"),
        ([1.0], "bfloat16", "bfloat16"),
        (np.array([2**53 + 2]), "float64", "float64"),
        (3.5, None, "float32"),
    ],
)
def test_the_dtype_of_a_leaf(data: Any, dtype: str | None, expected: str) -> None:
    tensor = torch_device().tensor(data, dtype)
    assert (tensor.dtype, len(tensor.shape)) == (expected, 1)
    np.testing.assert_array_equal(tensor.numpy().astype(np.float64), np.atleast_1d(data))


def test_a_dtype_that_there_is_not_names_those_there_are() -> None:
    with pytest.raises(DtypeError, match="float32 or float64 or float16 or bfloat16"):
        torch_device().tensor([1.0], "int8")
    with pytest.raises(DtypeError, match=r"`bfloat16` on Numpy\(Cpu\); .* or another backend"):
        open_backend("numpy").checked_dtype("bfloat16")


def test_operands_that_do_not_fit_are_a_shape_error() -> None:
    dev = torch_device().autodiff()
    x, y = dev.tensor(np.ones((2, 3))), dev.tensor(np.ones((4, 5)))
    for wrong in (lambda: x + y, lambda: x @ y, lambda: x.reshape([7]), lambda: x.expand([4, 3])):
        with pytest.raises(ShapeError):
            wrong()


def test_a_scatter_with_equal_positions_goes_in_order() -> None:
    """PyTorch leaves open which of two assignments to a place stays; the ops do not."""
    rng = np.random.default_rng(0)
    positions = rng.integers(0, 50, 2000)
    values, flat = rng.normal(size=2000), rng.normal(size=50)
    namespace = torch_device().namespace
    for update in ("assign", "add", "mul", "min", "max"):
        found = namespace.scatter(
            torch.tensor(flat), torch.tensor(positions), torch.tensor(values), update
        )
        expected = numpy_namespace.scatter(flat, positions, values, update)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    "name", ["abs", "sign", "sigmoid", "gelu", "relu", "erf", "round", "trunc"]
)
def test_special_values_are_numpys(name: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, -40.0, 40.0, 0.5, 1.5, 2.5, -0.5, 800.0, -800.0])
    with np.errstate(all="ignore"):
        expected = getattr(numpy_namespace, name)(x)
    found = getattr(torch_device().namespace, name)(torch.tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0)


def test_the_decomposition_is_packed_as_numpys() -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 5))
    namespace = torch_device().namespace
    packed = namespace.svd(torch.tensor(matrix)).numpy()
    u, s, v = packed[:5], packed[5], packed[6:]
    np.testing.assert_allclose(u * s @ v.T, matrix, atol=1e-13)
    np.testing.assert_allclose(np.abs(packed), np.abs(numpy_namespace.svd(matrix)), atol=1e-12)
    half = namespace.svd(torch.eye(3, dtype=torch.float16))
    assert (half.dtype, tuple(half.shape)) == (torch.float16, (7, 3))
    matrix[0, 0] = np.nan
    for backend in (namespace.svd(torch.tensor(matrix)).numpy(), numpy_namespace.svd(matrix)):
        assert np.isnan(backend).all()


@pytest.mark.parametrize("index", range(0, len(RECORDED), 4))
def test_what_is_held_and_recomputed_is_numpys(index: int) -> None:
    strategy = parse_strategy(RECORDED[index]["strategy"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = memory_pass(programs()[index], torch_device(), strategy)
        numpys = memory_pass(programs()[index], device(), strategy, workspace=False)
    for figure in ("params_input_bytes", "after_forward_bytes", "saved_bytes", "saved_tensors"):
        assert getattr(ours.memory, figure) == getattr(numpys.memory, figure)
    assert ours.outcome.recomputed_by_op == numpys.outcome.recomputed_by_op
    assert [(n.node, n.fate, n.uses) for n in ours.trace.nodes] == [
        (n.node, n.fate, n.uses) for n in numpys.trace.nodes
    ]
    assert ours.memory.traced_peak_backward_bytes is None


def test_tracemalloc_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("tracemalloc was started")

    monkeypatch.setattr(tracemalloc, "start", refused)
    record = profile(SiluWorkload(2, 8), backend=torch_device().backend, plan=Plan(1, 0))
    assert record.rows[0].memory.traced_peak_forward_bytes is None


def test_the_clock_of_the_processor_is_the_hosts() -> None:
    assert torch_device().backend.clock() is time.perf_counter


@pytest.mark.parametrize("name", ["sigmoid_gradient", "gelu_gradient", "relu_gradient"])
def test_a_gradient_kernel_may_overwrite_its_operand(name: str) -> None:
    x = np.array([np.inf, -40.0, 40.0, 0.5, 0.0, -0.7, 3.0])
    g = np.arange(1.0, 8.0)
    with np.errstate(all="ignore"):
        expected = getattr(numpy_namespace, name)(x, g)
    kernel = getattr(torch_device().namespace, name)
    gradient = torch.tensor(g)
    fresh = kernel(torch.tensor(x), gradient)
    assert kernel(torch.tensor(x), gradient, gradient) is gradient
    np.testing.assert_allclose(fresh.numpy(), expected, rtol=1e-13, atol=1e-300)
    assert same_bits([fresh.numpy()], [gradient.numpy()])


@pytest.mark.parametrize(
    ("device_name", "label", "float64", "deterministic"),
    [
        ("cpu", "Torch(Cpu)", True, True),
        ("cuda:0", "Torch(Cuda(0))", True, False),
        ("cuda:1", "Torch(Cuda(1))", True, False),
        ("mps", "Torch(Mps)", False, False),
    ],
)
def test_a_device_and_what_it_can_do(
    device_name: str, label: str, float64: bool, deterministic: bool
) -> None:
    """Nothing is asked of the device before something is computed."""
    backend = torch_backend.TorchBackend(device_name)
    assert (backend.label, backend.is_deterministic) == (label, deterministic)
    assert ("float64" in backend.dtypes) == float64
    assert {"float32", "float16", "bfloat16"} <= set(backend.dtypes)
    assert isinstance(backend.memory, torch_backend.CudaMemory) == ("cuda" in device_name)


class FakeEvent:
    """CUDA's events without CUDA: half a millisecond apart, as float32 of milliseconds."""

    ticks = itertools.count()

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, stream: object) -> None:
        self.tick = next(self.ticks)

    def synchronize(self) -> None:
        assert self.tick >= 0

    def elapsed_time(self, other: FakeEvent) -> float:
        return float(np.float32(0.5 * (other.tick - self.tick)))


def test_the_clock_of_a_cuda_device_sums_up_distances_of_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    clock = torch_backend.CudaClock(torch.device("cuda:0"))
    times = [clock() for _ in range(1000)]
    assert times[0] == pytest.approx(0.0005)
    assert times[-1] == pytest.approx(0.5, rel=1e-12)


def test_the_allocator_of_a_cuda_device_is_read_after_synchronizing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    statistics = {"requested_bytes.all.peak": 1, "allocated_bytes.all.peak": 2}
    for name in ("synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda device, name=name: calls.append(name))
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: statistics)
    memory = torch_backend.CudaMemory(torch.device("cuda:0"))
    memory.start_phase()
    assert calls == ["synchronize", "reset_peak_memory_stats"]
    assert memory.peak() == PeakReading(1, 2, None)
    assert calls[-1] == "synchronize"


def test_apples_gpu_tells_what_is_in_use_and_what_it_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its allocator is read after the device is done; it keeps no peaks."""
    calls: list[str] = []
    figures = {"current_allocated_memory": 3, "driver_allocated_memory": 40}
    for name, figure in {**figures, "recommended_max_memory": 100}.items():
        monkeypatch.setattr(torch.mps, name, lambda figure=figure: figure, raising=False)
    monkeypatch.setattr(torch.mps, "synchronize", lambda: calls.append("synchronize"))
    backend = torch_backend.TorchBackend("mps")
    backend.memory.start_phase()
    assert backend.memory.peak() is None
    assert backend.memory.use() == UseReading(in_use_bytes=3, driver_bytes=40)
    assert calls == ["synchronize", "synchronize"]
    assert backend.accelerator() == AcceleratorFacts("Apple GPU", 100, None)
    assert backend.free_bytes() == 60
    monkeypatch.delattr(torch.mps, "recommended_max_memory")  # before PyTorch 2.5
    assert backend.accelerator() == AcceleratorFacts("Apple GPU", None, None)
    assert backend.free_bytes() is None


@pytest.mark.parametrize("command", ["run", "check", "log", "saved"])
def test_what_numpy_does_with_its_values_is_quiet_too(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Infinities of both signs, whose sum on the host is nan."""
    path = tmp_path / "g.json"
    leaf = {"op": "leaf", "req": True, "data": [1e200, -1e200]}
    path.write_text(json.dumps({"ops": [leaf, *({"op": "mul", "in": [0, i]} for i in (0, 1))]}))
    reps = ["--reps", "1"] if command == "run" else []
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert (
            run_command([command, "--workload", f"graph:{path}", "--backend", "torch", *reps]) == 0
        )
    assert "encountered" not in capsys.readouterr().err


@pytest.mark.parametrize(("backend", "storages"), [("numpy", 1), ("torch", 2)])
def test_an_array_taken_twice_without_a_copy_counts_as_the_page_says(
    backend: str, storages: int
) -> None:
    ledger = Ledger()
    dev = Device(TrackedBackend(open_backend(backend), ledger))
    shared = np.ones(4096, np.float32)
    kept = [dev.tensor(shared, copy=False) for _ in range(2)]
    assert ledger.bytes_in_use == storages * shared.nbytes
    del kept
    assert ledger.bytes_in_use == 0 or backend == "numpy"  # whose storage the caller still has
