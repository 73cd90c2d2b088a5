"""The cupy backend's own code, on a stand-in for CuPy: nothing here has seen a GPU."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Plan, profile
from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.backends.libraries.cupy_library import CupyLibrary
from ckptcli.backends.random_keys import Distribution, RandomKey
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import DtypeError
from ckptcli.measure.machine import Accelerator
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.profiling.out_of_memory import PassOutOfMemory
from ckptcli.verify.check import check
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import numpy_outcome, op_outcome
from tests.cupy_stand_in import modules
from tests.gradient_cases import CASES

BACKEND = "ckptcli.backends.cupy_backend"


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in, under which the backend's module is loaded and forgotten again."""
    stand_in = modules()
    for name, module in stand_in.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(CupyLibrary, "packages", ("numpy",))
    monkeypatch.delitem(sys.modules, BACKEND, raising=False)
    yield stand_in["cupy"]
    sys.modules.pop(BACKEND, None)
    vars(importlib.import_module("ckptcli.backends")).pop("cupy_backend", None)


@pytest.fixture
def backend(cupy: Any) -> Backend:
    return open_backend("cupy")


def test_devices_and_labels(cupy: Any) -> None:
    assert [open_backend("cupy", name).label for name in (None, "cuda:1", "auto")] == [
        "Cupy(Cuda(0))",
        "Cupy(Cuda(1))",
        "Cupy(Cuda(0))",
    ]
    assert CupyLibrary().devices()[1].title == "Stand-in"


@pytest.mark.parametrize(
    "name",
    ["mul", "matmul", "gelu", "sigmoid", "relu", "cummax", "softmax", "sort", "scatter", "rfft"],
)
def test_ops_are_numpys(backend: Backend, name: str) -> None:
    for index in range(len(CASES[name])):
        log, arrays = op_outcome(name, index, Device(backend), "balanced")
        numpy_log, numpy_arrays = numpy_outcome(name, index, "balanced")
        assert log == numpy_log
        for ours, theirs in zip(arrays, numpy_arrays, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_a_profile_is_timed_by_events(backend: Backend, cupy: Any) -> None:
    record = profile(SiluWorkload(2, 8), backend=backend, plan=Plan(2, 0))
    assert (record.device, record.library) == ("Cupy(Cuda(0))", "CuPy 13.0.0")
    assert record.machine.accelerator == Accelerator("Stand-in", 2**34, "CUDA 12.4")
    for entry in record.rows:
        assert {sample.forward_s for sample in entry.samples} == {0.5}
        assert entry.memory.allocator_backward is not None
        assert entry.memory.traced_peak_backward_bytes is None
    assert cupy.pool.hooks == []


def test_the_hook_tells_the_peak_of_each_phase(backend: Backend, cupy: Any) -> None:
    kept = cupy.pool.take(1000)
    with backend.memory.watching():
        backend.memory.start_phase()
        first = cupy.pool.take(100)
        cupy.pool.give(first, 100)
        cupy.pool.give(kept, 1000)
        forward = backend.memory.peak()
        backend.memory.start_phase()
        backward = backend.memory.peak()
    assert forward is not None
    assert (forward.requested_bytes, forward.allocated_bytes) == (1024 + 100, 1024 + 512)
    assert backward is not None
    assert (backward.requested_bytes, backward.allocated_bytes) == (0, 0)
    assert cupy.pool.hooks == []


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, ArithmeticError])
@pytest.mark.parametrize("function", ["matmul", "sigmoid_gradient"])
def test_a_pass_that_fails_leaves_no_hook(
    backend: Backend, cupy: Any, function: str, error: type[BaseException]
) -> None:
    """In either phase, whatever it fails of."""

    def failing(*_: Any) -> Any:
        assert len(cupy.pool.hooks) == 1
        raise error

    setattr(backend.namespace, function, failing)
    raised = PassOutOfMemory if error is MemoryError else error
    with pytest.raises(raised):
        memory_pass(SiluWorkload(2, 8), Device(backend), parse_strategy("none"))
    assert cupy.pool.hooks == []


def test_check_on_it_measures_a_spread(backend: Backend) -> None:
    found = check(
        SiluWorkload(2, 8),
        parse_strategy("balanced"),
        SiluWorkload(2, 8, dtype="float64"),
        backend=backend,
    )
    assert found.passed
    assert found.spread == 0.0


def test_leaves_and_draws(backend: Backend) -> None:
    for data, dtype, expected in (
        ([1, 2], None, "float32"),
        (np.ones(2), None, "float64"),
        ([1.5], "float16", "float16"),
        (np.ones(2, np.float16), "float32", "float32"),
        (3.0, None, "float32"),
    ):
        tensor = Device(backend).tensor(data, dtype)
        assert (tensor.dtype, len(tensor.shape)) == (expected, 1)
        np.testing.assert_array_equal(tensor.numpy(), np.atleast_1d(data))
    with pytest.raises(DtypeError):
        Device(backend).tensor([1.0], "bfloat16")
    key = RandomKey(3, 0, Distribution("normal", 0.0, 1.0))
    drawn = backend.namespace.random(key, (4,), "float32")
    np.testing.assert_array_equal(drawn, open_backend().namespace.random(key, (4,), "float32"))
    with pytest.raises(ValueError, match="whole numbers"):
        backend.namespace.asindices([0.5])


def test_its_memory_error_is_out_of_memory(backend: Backend, cupy: Any) -> None:
    class OutOfMemoryError(MemoryError):
        """CuPy's derives from Python's."""

    assert backend.is_out_of_memory(OutOfMemoryError())
    assert backend.free_bytes() == 2**30
    backend.release_cached()
    assert cupy.pool.freed_all == 1
