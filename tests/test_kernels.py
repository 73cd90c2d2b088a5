"""The backend's own kernels: accuracy over the whole range, and the same bits however they are cut.

Oracles: Python's decimal arithmetic with 60 digits, `math.erf`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ckptcli.backends import numpy_namespace as xp
from ckptcli.backends.numpy_blocks import BLOCK_ELEMENTS
from tests.helpers import same_bits

Array = NDArray[Any]

DIGITS = Context(prec=60, Emin=-9999, Emax=9999)
LARGE = 3 * BLOCK_ELEMENTS + 17
DTYPES = ("float32", "float64")


def random(shape: int | tuple[int, ...], dtype: str, seed: int = 0, scale: float = 3.0) -> Array:
    rng = np.random.Generator(np.random.PCG64(seed))
    return np.asarray(rng.normal(0.0, scale, shape), dtype=dtype)


def exact_sigmoid(x: float) -> Decimal:
    e = DIGITS.exp(DIGITS.minus(Decimal(x)))
    return DIGITS.divide(Decimal(1), DIGITS.add(Decimal(1), e))


def range_of(dtype: str, low: float, high: float) -> Array:
    """Points over [low, high], close to 0 and at the ends."""
    near_zero = np.geomspace(1e-30, 1.0, 50)
    points = np.concatenate(
        [np.linspace(low, high, 2001), near_zero, -near_zero, random(500, dtype)]
    )
    return np.asarray(points, dtype=dtype)


@pytest.mark.parametrize(("dtype", "low", "high"), [("float32", -104, 60), ("float64", -746, 60)])
def test_sigmoid_is_accurate_to_a_few_units_in_the_last_place(
    dtype: str, low: float, high: float
) -> None:
    x = range_of(dtype, low, high)
    for value, actual in zip(x.tolist(), xp.sigmoid(x)):
        exact = exact_sigmoid(value)
        unit = float(np.spacing(np.asarray(float(exact), dtype=dtype)))
        assert abs(Decimal(float(actual)) - exact) <= 4 * Decimal(unit), value


def test_sigmoid_far_out() -> None:
    assert xp.sigmoid(np.array([-40.0])).item() == 4.248354255291589e-18


@pytest.mark.parametrize("dtype", DTYPES)
def test_sigmoid_warns_of_nothing_and_keeps_nan(dtype: str) -> None:
    x = np.array([-np.inf, -1000.0, 0.0, 1000.0, np.inf, np.nan], dtype=dtype)
    np.testing.assert_array_equal(xp.sigmoid(x), [0.0, 0.0, 0.5, 1.0, 1.0, np.nan])
    slope = xp.sigmoid_gradient(x, np.ones_like(x))
    np.testing.assert_allclose(slope, [0.0, 0.0, 0.25, 0.0, 0.0, np.nan], rtol=0, atol=1e-37)


def test_sigmoid_gradient_is_accurate_in_both_tails() -> None:
    x = range_of("float64", -700, 700)
    for value, actual in zip(x.tolist(), xp.sigmoid_gradient(x, np.ones_like(x))):
        exact = DIGITS.multiply(exact_sigmoid(value), exact_sigmoid(-value))
        assert abs(Decimal(float(actual)) - exact) <= Decimal("1e-15") * exact, value


def test_erf_and_gelu_are_those_of_libm() -> None:
    x = np.concatenate([range_of("float64", -7, 7), [0.46875, -0.46875, 5.9999, 6.0, 30.0]])
    erf = [math.erf(value) for value in x]
    phi = [0.5 * math.erfc(-value * math.sqrt(0.5)) for value in x]
    density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(xp.erf(x), erf, rtol=1e-15, atol=0)
    np.testing.assert_allclose(xp.gelu(x), x * phi, rtol=1e-15, atol=1e-15)
    slope = xp.gelu_gradient(x, np.ones_like(x))
    np.testing.assert_allclose(slope, phi + x * density, rtol=1e-15, atol=1e-15)


def units_off(actual: Array, exact: list[float]) -> Array:
    """How many units in the last place of `actual`'s dtype it is off."""
    unit = np.spacing(np.abs(np.asarray(exact)).astype(actual.dtype))
    return np.abs(actual.astype(np.float64) - exact) / unit.astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_erf_is_accurate_to_the_units_that_it_claims(dtype: str) -> None:
    dense = [np.linspace(-7, 7, 100_001), np.linspace(0.46, 0.5, 100_001)]
    x = np.concatenate([*dense, -dense[1]]).astype(dtype)
    off = units_off(xp.erf(x), [math.erf(value) for value in x.tolist()])
    assert off.max() <= 6
    assert off[(np.abs(x) < 0.46) | (np.abs(x) > 0.6)].max() <= 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_gelu_keeps_its_lower_tail(dtype: str) -> None:
    x = np.linspace(-12.0, -1.0, 5001).astype(dtype)
    share = np.array([0.5 * math.erfc(-value * math.sqrt(0.5)) for value in x.tolist()])
    rtol = 3e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(xp.gelu(x), x * share, rtol=rtol, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gelu_gradient_far_out_warns_of_nothing(dtype: str) -> None:
    far = float(np.finfo(dtype).max)
    x = np.array([-np.inf, -far, -41.0, 41.0, far, np.inf, np.nan], dtype=dtype)
    with np.errstate(over="raise", invalid="raise"):
        slope = xp.gelu_gradient(x, np.ones_like(x))
    np.testing.assert_array_equal(slope, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, np.nan])


def test_erf_at_the_ends() -> None:
    x = np.array([-np.inf, -0.0, np.inf, np.nan])
    np.testing.assert_array_equal(xp.erf(x), [-1.0, 0.0, 1.0, np.nan])
    assert np.signbit(xp.erf(x)[1])


VALUES = {name: getattr(xp, name) for name in ("sigmoid", "relu", "erf", "gelu")}
GRADIENTS = {
    name: getattr(xp, name) for name in ("sigmoid_gradient", "relu_gradient", "gelu_gradient")
}
KERNELS: dict[str, tuple[Callable[..., Array], int]] = {
    **{name: (kernel, 1) for name, kernel in VALUES.items()},
    **{name: (kernel, 2) for name, kernel in GRADIENTS.items()},
}

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "flat": lambda x: x,
    "matrix": lambda x: x[:98304].reshape(256, 384),
    "transposed": lambda x: x[:98304].reshape(256, 384).T,
    "fortran": lambda x: np.asfortranarray(x[:98304].reshape(256, 384)),
    "strided": lambda x: np.repeat(x, 2)[::2],
    "rows and columns left out": lambda x: np.tile(x[:98304].reshape(256, 384), (2, 3))[::2, ::3],
    "broadcast": lambda x: np.broadcast_to(x[:400], (300, 400)),
}


def piecewise(kernel: Callable[..., Array], operands: list[Array]) -> Array:
    """The kernel on copies of 777 elements at a time, which is less than a block."""
    flat = [np.ascontiguousarray(operand).reshape(-1) for operand in operands]
    pieces = [
        kernel(*[operand[start : start + 777].copy() for operand in flat])
        for start in range(0, flat[0].size, 777)
    ]
    return np.concatenate(pieces).reshape(operands[0].shape)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", KERNELS)
def test_blocks_and_layouts_do_not_change_a_bit(name: str, layout: str, dtype: str) -> None:
    kernel, arity = KERNELS[name]
    operands = [LAYOUTS[layout](random(LARGE, dtype, seed)) for seed in range(arity)]
    assert operands[0].size > BLOCK_ELEMENTS
    result = kernel(*operands)
    assert result.shape == operands[0].shape
    assert same_bits([result], [piecewise(kernel, operands)])


def special_values(dtype: str) -> Array:
    """Both zeros, both signs of nan, what is infinite or subnormal, and what lies at a bound."""
    least = np.finfo(dtype).smallest_subnormal
    bounds = [0.46875, 1.0, math.sqrt(0.5), 4.0, math.sqrt(32.0), 6.0, math.sqrt(72.0), 30.0]
    beyond = [40.0, 41.0, 88.0, 89.0, 103.0, 709.0, 710.0, 745.0, math.inf, math.nan]
    values = np.array([0.0, least, 1000.0 * float(least), 1e-30, *bounds, *beyond], dtype=dtype)
    around = [np.nextafter(values, np.asarray(side, dtype)) for side in (-np.inf, np.inf)]
    positive = np.concatenate([values, *around])
    return np.concatenate([positive, -positive])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", [1, 100, LARGE])
@pytest.mark.parametrize("layout", ["flat", "transposed"])
@pytest.mark.parametrize("name", KERNELS)
def test_special_values_change_no_bit_of_those_beside_them(
    name: str, layout: str, share: int, dtype: str
) -> None:
    """What one block needs for them, another does without: each element gets the same bits."""
    kernel, arity = KERNELS[name]
    rng = np.random.default_rng(share)
    flat = [random(LARGE, dtype, seed, scale=1.0) for seed in range(arity)]
    for operand in flat:
        operand[rng.integers(0, LARGE, share)] = rng.choice(special_values(dtype), share)
    operands = [LAYOUTS[layout](operand) for operand in flat]
    with np.errstate(over="ignore", invalid="ignore"):
        assert same_bits([kernel(*operands)], [piecewise(kernel, operands)])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("name", KERNELS)
def test_of_nothing_comes_nothing(name: str, shape: tuple[int, ...]) -> None:
    kernel, arity = KERNELS[name]
    assert kernel(*[np.zeros(shape)] * arity).shape == shape


@pytest.mark.parametrize("dtype", DTYPES)
def test_relu_gradient_chooses(dtype: str) -> None:
    """Whatever the gradient is; 0 only where x is 0 or less, and +0 there."""
    kinds = special_values(dtype)
    x, gradient = (np.resize(kind, 40_000) for kind in (kinds, kinds[::-1][:-1]))
    expected = np.where(x <= 0, np.zeros_like(x), gradient)
    assert same_bits([xp.relu_gradient(x, gradient)], [expected])
    assert same_bits([xp.relu_gradient(x, gradient, gradient)], [expected])


@pytest.mark.parametrize("layout", ["flat", "matrix", "transposed", "strided"])
@pytest.mark.parametrize("size", [100, LARGE])
@pytest.mark.parametrize("name", GRADIENTS)
def test_overwriting_the_gradient_does_not_change_a_bit(name: str, size: int, layout: str) -> None:
    kernel = GRADIENTS[name]
    if size == LARGE:
        x, g = (LAYOUTS[layout](random(size, "float32", seed)) for seed in (0, 1))
    else:
        x, g = random(size, "float32", 0), random(size, "float32", 1)
    expected = kernel(x, g)
    target = g.copy(order="K")
    assert kernel(x, target, target) is target
    assert same_bits([target], [expected])
