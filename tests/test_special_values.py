"""Values and gradients where an intermediate step overflows, loses its digits or has a limit.

Each row says what is right: the derivative, or its limit where that is finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor, cat, device
from tests.backend_kit import BACKENDS
from tests.helpers import backward, gradient

INF, NAN = math.inf, math.nan


@pytest.fixture(params=BACKENDS)
def dev(request: pytest.FixtureRequest) -> Device:
    return device(request.param, "cpu").autodiff()


@dataclass(frozen=True)
class Row:
    """`function` of operands; None stands for a value or a gradient that is not looked at."""

    function: Callable[..., Tensor]
    operands: Sequence[Any]
    value: Any
    gradients: Sequence[Any]
    dtype: str = "float32"
    rtol: float = 1e-6


def slopes(function: Callable[..., Tensor], x: Any, value: Any, slope: Any, **more: Any) -> Row:
    """A row of a function of one tensor."""
    return Row(function, [x], value, [slope], **more)


def ratio(lhs: float, rhs: float, value: Any, *gradients: Any) -> Row:
    return Row(lambda a, b: a / b, [[lhs], [rhs]], value, gradients)


IMAGE = [[[[1.0, INF], [3.0, 4.0]]]]
ROWS: dict[str, Row] = {
    # The branch that is not selected.
    "elu": slopes(lambda x: x.elu(), [100.0, -1.0, INF], None, [1.0, math.exp(-1), 1.0]),
    "celu": slopes(lambda x: x.celu(0.5), [100.0, -1.0], None, [1.0, math.exp(-2)]),
    "selu": slopes(lambda x: x.selu(), [100.0], None, [1.0507009873554805]),
    "mish": slopes(lambda x: x.mish(), [100.0, 1e38, INF], [100.0, 1e38, INF], [1.0, 1.0, 1.0]),
    "elu, float64": slopes(lambda x: x.elu(), [800.0], [800.0], [1.0], dtype="float64"),
    "selu, float64": slopes(
        lambda x: x.selu(), [800.0], None, [1.0507009873554805], dtype="float64"
    ),
    "mish, float64": slopes(lambda x: x.mish(), [800.0], [800.0], [1.0], dtype="float64"),
    "gelu_approximate": slopes(
        lambda x: x.gelu_approximate(), [1e20, -1e20, INF], [1e20, 0.0, INF], [1.0, 0.0, 1.0]
    ),
    "gelu, small": slopes(
        lambda x: x.gelu(),
        [-6.0, -9.0],
        [-5.9195254e-9, -1.0157e-18],
        [-3.546871e-8, -9.138937e-18],
        rtol=1e-3,
    ),
    "gelu_approximate, small": slopes(
        lambda x: x.gelu_approximate(), [-6.0], [-8.4396e-11], None, rtol=1e-4
    ),
    "hypot, whose sum is too large": Row(
        lambda a, b: a.hypot(b), [[3e38], [3e38]], None, [[0.70710678]] * 2
    ),
    "atan2 of the smallest": Row(lambda a, b: a.atan2(b), [[0.0], [1e-38]], None, [[1e38], [0.0]]),
    # Tails.
    "softplus": slopes(
        lambda x: x.softplus(),
        [-20.0, 100.0, -INF, INF],
        [2.0611537e-9, 100.0, 0.0, INF],
        [2.0611537e-9, 1.0, 0.0, 1.0],
    ),
    "softplus, steep": slopes(lambda x: x.softplus(4.0), [100.0], [100.0], [1.0]),
    "mish, small": slopes(lambda x: x.mish(), [-20.0], [-4.1223073e-8], None),
    "elu near 0": slopes(lambda x: x.elu(), [-1e-8], [-1e-8], [1.0]),
    "tanh": slopes(
        lambda x: x.tanh(), [10.0, -20.0, INF], None, [8.2446145e-9, 1.6993417e-17, 0.0]
    ),
    # A cap that never reaches 0.
    "silu": slopes(
        lambda x: x.silu(), [1e38, INF, 1.0, -20.0], None, [1.0, 1.0, 0.9276705, -3.9161922e-8]
    ),
    "silu, float64": slopes(lambda x: x.silu(), [1e308, INF], None, [1.0, 1.0], dtype="float64"),
    "sigmoid": slopes(
        lambda x: x.sigmoid(), [80.0, 1e38, -80.0], None, [1.8048514e-35, 0.0, 1.8048514e-35]
    ),
    # An operand squared.
    "div, small": ratio(1e-20, 1e-23, None, [1e23], [-1e26]),
    "div, large": ratio(1e20, 1e25, None, [1e-25], [-1e-30]),
    "div, nothing": ratio(0.0, 1e-30, [0.0], [1e30], [0.0]),
    "div, infinite": ratio(1.0, INF, [0.0], [0.0], [0.0]),
    "recip": slopes(lambda x: x.recip(), [1e-19, 1e22], None, [-1e38, -9.9e-45]),
    "atan2": Row(lambda a, b: a.atan2(b), [[1e-20], [1e-20]], None, [[5e19], [-5e19]]),
    "atan2, infinite": Row(lambda a, b: a.atan2(b), [[1.0], [INF]], [0.0], [[0.0], [0.0]]),
    "hypot": Row(lambda a, b: a.hypot(b), [[1e-40], [1e-40]], None, [[0.70710678]] * 2, rtol=1e-4),
    "hypot, large": Row(lambda a, b: a.hypot(b), [[3e37], [4e37]], [5e37], [[0.6], [0.8]]),
    "hypot, infinite": Row(lambda a, b: a.hypot(b), [[INF], [1.0]], [INF], [[1.0], [0.0]]),
    "asinh": slopes(lambda x: x.asinh(), [1e20, -1e20], None, [1e-20, 1e-20]),
    "acosh": slopes(lambda x: x.acosh(), [1e20], None, [1e-20]),
    "atan": slopes(lambda x: x.atan(), [1e19], None, [1e-38]),
    # A limit.
    "powf at 0": Row(lambda a, b: a.powf(b), [[0.0], [2.0]], [0.0], [[0.0], [0.0]]),
    "powf to the 0": Row(lambda a, b: a.powf(b), [[0.0], [0.0]], [1.0], [[0.0], [0.0]]),
    "powf of inf": Row(lambda a, b: a.powf(b), [[INF], [-1.0]], [0.0], [[0.0], [0.0]]),
    # A product divided by a factor.
    "prod": slopes(lambda x: x.prod(), [0.0, 2.0, 3.0], [0.0], [6.0, 0.0, 0.0]),
    "prod of two zeros": slopes(lambda x: x.prod(), [[0.0, 2.0], [0.0, 3.0]], [0.0], [[0, 0]] * 2),
    "prod_dim": slopes(
        lambda x: x.prod_dim(1), [[0.0, 2.0, 3.0], [4.0, 5.0, 0.5]], None, [[6, 0, 0], [2.5, 2, 20]]
    ),
    "cumprod": slopes(lambda x: x.cumprod(0), [0.0, 2.0, 3.0], [0, 0, 0], [9.0, 0.0, 0.0]),
    "cumprod of five": slopes(
        lambda x: x.cumprod(0), [2.0, 0.0, 3.0, 4.0, 5.0], None, [1.0, 152.0, 0.0, 0.0, 0.0]
    ),
    # The quotient of a remainder.
    "remainder": Row(
        lambda a, b: a % b,
        [[1.0, 5.0, -1.0, 7.0, -1.0, 1e-38], [0.1, 0.1, 0.1, -2.0, INF, -1e38]],
        None,
        [None, [-9.0, -49.0, 10.0, 4.0, 1.0, 1.0]],
    ),
    # Not a number, and ties.
    "cummax": slopes(lambda x: x.cummax(0), [NAN, 1.0, 2.0], [NAN] * 3, [3.0, 0.0, 0.0]),
    "cummin": slopes(lambda x: x.cummin(0), [2.0, NAN, 1.0], [2.0, NAN, NAN], [1.0, 2.0, 0.0]),
    "cummax, ties": slopes(lambda x: x.cummax(0), [1.0, 2.0, 2.0, 1.0], None, [1.0, 3.0, 0.0, 0.0]),
    "sort": slopes(lambda x: x.sort(0, descending=True), [1.0, NAN, 3.0], [NAN, 3.0, 1.0], None),
    "topk": slopes(lambda x: x.topk_with_indices(1, 0)[0], [1.0, NAN, 3.0], [NAN], [0, 1, 0]),
    "max": slopes(lambda x: x.max(), [1.0, NAN, 3.0], [NAN], [0, 1, 0]),
    "quiet_softmax": slopes(
        lambda x: x.quiet_softmax(1), [[-INF, -INF], [0.0, -INF]], [[0, 0], [0.5, 0]], None
    ),
    "quiet_softmax, small": slopes(lambda x: x.quiet_softmax(1), [[-100.0]], [[3.78e-44]], None),
    # A map in which an element has no part.
    "avg_pool1d": slopes(
        lambda x: x.avg_pool1d(2, 2), [[[1.0, 2.0, INF, 4.0]]], [[[1.5, INF]]], [[[0.5] * 4]]
    ),
    "avg_pool2d": slopes(lambda x: x.avg_pool2d(1), IMAGE, IMAGE, [[[[1.0] * 2] * 2]]),
    "adaptive_avg_pool1d": slopes(
        lambda x: x.adaptive_avg_pool1d(2), [[[1.0, 2.0, NAN, 4.0]]], [[[1.5, NAN]]], [[[0.5] * 4]]
    ),
    "adaptive_avg_pool2d": slopes(
        lambda x: x.adaptive_avg_pool2d(2), IMAGE, IMAGE, [[[[1.0] * 2] * 2]]
    ),
    "nearest": slopes(
        lambda x: x.interpolate([2, 4], "nearest"),
        IMAGE,
        [[[[1.0, 1.0, INF, INF], [3.0, 3.0, 4.0, 4.0]]]],
        [[[[2.0] * 2] * 2]],
    ),
    "bilinear": slopes(
        lambda x: x.interpolate([2, 3], "bilinear"),
        IMAGE,
        [[[[1.0, INF, INF], [3.0, 3.5, 4.0]]]],
        [[[[1.5] * 2] * 2]],
    ),
}


def scattered(update: str, x: Any, values: Any, value: Any, *gradients: Any) -> Row:
    indices = np.zeros((len(values), 1), dtype=np.int64)
    return Row(lambda a, v: a.scatter_nd(indices, v, update), [x, values], value, gradients)


ROWS |= {
    "max, twice": scattered("max", [1.0], [3.0, 5.0], [5.0], [0.0], [0.0, 1.0]),
    "min, twice": scattered("min", [4.0], [3.0, 5.0], [3.0], [0.0], [1.0, 0.0]),
    "max, the element": scattered("max", [5.0], [3.0, 5.0], [5.0], [1.0], [0.0, 0.0]),
    "max, equal": scattered("max", [1.0], [5.0, 5.0], [5.0], [0.0], [1.0, 0.0]),
    "max, nan": scattered("max", [1.0], [3.0, NAN], [NAN], [0.0], [0.0, 1.0]),
    "min, nan": scattered("min", [NAN], [3.0, NAN], [NAN], [1.0], [0.0, 0.0]),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_value_and_its_gradients_are_right(dev: Device, name: str) -> None:
    row = ROWS[name]
    arrays = [np.asarray(operand, dtype=row.dtype) for operand in row.operands]
    operands = [dev.tensor(array).require_grad() for array in arrays]
    with dev.backend.quiet():
        output = row.function(*operands)
        gradients = backward(output.sum())
    if row.value is not None:
        np.testing.assert_allclose(output.numpy(), row.value, rtol=row.rtol, atol=1e-44)
    for operand, expected in zip(operands, row.gradients, strict=True):
        if expected is not None:
            found = gradient(gradients, operand)
            np.testing.assert_allclose(found, expected, rtol=row.rtol, atol=1e-44)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9, 33])
def test_the_gradient_of_a_running_product(length: int) -> None:
    """Against the sum over outputs, each a product of the others, without a division."""
    rng = np.random.Generator(np.random.PCG64(length))
    x = rng.choice([0.0, 1.0, -2.0, 0.5, 1.5], (3, length))
    weights = rng.normal(size=(3, length))
    leaf = device().autodiff().tensor(x).require_grad()
    found = gradient(backward((leaf.cumprod(1) * leaf.device.tensor(weights)).sum()), leaf)
    for row in range(3):
        for i in range(length):
            others = [np.prod(np.delete(x[row, : k + 1], i)) for k in range(i, length)]
            np.testing.assert_allclose(found[row, i], others @ weights[row, i:], rtol=1e-12)


@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("float64", 8)])
def test_a_column_of_a_gradient_is_negated_in_place(dev: Device, dtype: str, width: int) -> None:
    """As `cat` hands it on: NumPy 2.4's own negation in place reads its neighbours instead."""
    data = np.arange(5.0 * width, dtype=dtype).reshape(5, width)
    columns = [dev.tensor(np.ones((5, 1), dtype)).require_grad() for _ in range(width)]
    joined = cat([column.neg().neg() for column in columns], 1)
    gradients = backward((joined * dev.tensor(data)).sum())
    for place, column in enumerate(columns):
        np.testing.assert_array_equal(gradient(gradients, column), data[:, place : place + 1])
