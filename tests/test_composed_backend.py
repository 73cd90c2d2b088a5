"""What the cupy backend is made of, run on NumPy: the rebound namespace and composed functions.

What is not composed and CuPy lacks fails here, on a stand-in with CuPy's restrictions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckptcli.backends import numpy_namespace
from ckptcli.backends.composed import COMPOSED, composed
from ckptcli.backends.pool_peaks import PoolPeaks
from ckptcli.backends.rebound import rebound
from tests.backend_kit import NEEDS_TORCH, check_outcomes_of_numpy, pass_outcome
from tests.cupy_stand_in import Library, erf, erfc, stand_in_device
from tests.gradient_cases import CASES
from tests.helpers import log_lines, same_bits
from tests.recorded_programs import RECORDED, programs


def test_the_functions_are_numpys_but_none_of_its_own_is_called_directly() -> None:
    names = rebound(Library())
    assert names["add"] is not np.add
    assert names["sum_dim"] is not numpy_namespace.sum_dim
    assert names["sum_dim"].__code__ is numpy_namespace.sum_dim.__code__
    assert names["matmul"].__globals__["np"] is names["np"]
    assert names.keys() >= {n for n in vars(numpy_namespace) if not n.startswith("_")} - {"np"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("index", range(0, len(RECORDED), 4))
def test_log_and_gradients_are_those_that_burn_recorded(index: int) -> None:
    recorded = RECORDED[index]
    events, gradients = pass_outcome(
        stand_in_device(), recorded["strategy"], programs()[index].load
    )
    assert log_lines(events) == recorded["log"]
    for name, expected in recorded["grads"].items():
        np.testing.assert_allclose(gradients[name].ravel(), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_op_has_numpys_log_value_and_gradients(name: str) -> None:
    check_outcomes_of_numpy(name, stand_in_device)


@pytest.mark.parametrize("update", ["assign", "add", "mul", "min", "max"])
def test_a_scatter_with_equal_positions_goes_in_order(update: str) -> None:
    rng = np.random.default_rng(0)
    namespace = stand_in_device().namespace
    for count in (0, 1, 300):
        positions = rng.integers(0, 20, count)
        values, flat = rng.normal(size=count), rng.normal(size=20)
        found = namespace.scatter(flat, positions, values, update)
        expected = numpy_namespace.scatter(flat, positions, values, update)
        assert same_bits([found], [expected])


@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 13])
def test_running_extremes_are_numpys(length: int) -> None:
    x = np.random.default_rng(length).normal(size=(3, length, 2))
    if length > 2:
        x[0, 2, 0] = np.nan
    namespace = stand_in_device().namespace
    for name in ("cumulative_max", "cumulative_min"):
        assert same_bits([getattr(namespace, name)(x, 1)], [getattr(numpy_namespace, name)(x, 1)])


def test_every_composed_function_is_one_of_the_namespace() -> None:
    assert {name for name in COMPOSED if not hasattr(numpy_namespace, name)} == set()


def test_the_sign_of_nan_is_nan() -> None:
    """CuPy's own is 0."""
    sign = composed(np, erf, erfc)["sign"]
    np.testing.assert_array_equal(sign(np.array([-2.0, 0.0, np.nan])), [-1.0, 0.0, np.nan])


def test_a_failed_allocation_counts_as_nothing() -> None:
    """CuPy tells of it with address 0."""
    peaks = PoolPeaks(lambda: 1024, lambda: 4096)
    peaks.taken(0, 1 << 40, 1 << 40)
    peaks.taken(1, 100, 512)
    assert (peaks.peak().requested_bytes, peaks.peak().allocated_bytes) == (1124, 1536)


def test_pool_peaks_tell_requested_allocated_and_reserved_apart() -> None:
    pool = {"used": 1024, "total": 4096}
    peaks = PoolPeaks(lambda: pool["used"], lambda: pool["total"])
    peaks.taken(1, 100, 512)
    peaks.taken(2, 1000, 1024)
    pool["total"] = 8192
    peaks.freed(1, 512)
    peaks.taken(3, 10, 512)
    peaks.freed(99, 1024)  # from before the phase
    highest = peaks.peak()
    assert highest.requested_bytes == 1024 + 100 + 1000
    assert highest.allocated_bytes == 1024 + 512 + 1024
    assert highest.reserved_bytes == 8192
    pool["used"] = 2048
    peaks.start()
    assert peaks.peak().allocated_bytes == 2048


SPECIAL = (0.0, 1.0, 40.0, 87.5, 88.5, 89.0, 104.0, 709.5, 710.0, 745.0, 1e19, 1e38, np.inf, np.nan)
"""Tails, the caps of exponentials, what squares overflow at; of either sign."""


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_composed_function_of_one_element_is_numpys(dtype: str) -> None:
    """To rounding, which an exponential of a square multiplies; float16 as float32 rounded, but
    for infinite gradients: a slope is 0 there much earlier.
    """
    functions = composed(np, erf, erfc)
    edges = np.array([np.finfo(dtype).tiny, np.finfo(dtype).max, *SPECIAL])
    x = np.concatenate([edges, -edges, np.linspace(-45, 45, 720)]).astype(dtype)
    ends = [] if dtype == "float16" else [np.inf, -np.inf]
    gradients = np.array([1.0, 0.0, -2.5, np.nan, *ends]).astype(dtype)
    wide = np.promote_types(dtype, np.float32)
    for name in ("erf", "sigmoid", "sign", "relu", "gelu"):
        found = functions[name](x.copy())
        _check_near(found, getattr(numpy_namespace, name)(x.astype(wide)).astype(dtype), x)
    each, weights = (np.ravel(part) for part in np.meshgrid(x, gradients))
    for name in ("sigmoid_gradient", "relu_gradient", "gelu_gradient"):
        expected = getattr(numpy_namespace, name)(each.astype(wide), weights.astype(wide))
        _check_near(functions[name](each, weights), expected.astype(dtype), each)


def _check_near(found: Any, expected: Any, x: Any) -> None:
    limits = np.finfo(expected.dtype)
    assert found.dtype == expected.dtype
    size = np.minimum(np.abs(expected), limits.max).astype(float)
    allowed = size * limits.eps * (32 + np.square(np.clip(x.astype(float), -40, 40)))
    same = (found == expected) & (np.signbit(found) == np.signbit(expected))
    near = np.abs(found - expected) <= allowed + 128 * limits.smallest_subnormal
    wrong = ~(same | near | (np.isnan(found) & np.isnan(expected)))
    assert not wrong.any(), (x[wrong], found[wrong], expected[wrong])


@NEEDS_TORCH
@pytest.mark.slow
def test_ops_on_hard_operands_have_the_gradients_of_the_reference() -> None:
    from tests.fuzz_ops import OPS, run

    count, findings = run(7, OPS, lambda done: done < 2 * len(OPS), ["cupy"])
    assert count == 2 * len(OPS)
    assert [str(finding) for finding in findings] == []
